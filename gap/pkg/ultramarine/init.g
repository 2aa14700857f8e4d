##  This package declares nothing before it is read.
