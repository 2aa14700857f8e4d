//! Bulk-synchronous programs that survive deaths (Kromonov, NEWT, ch. 3 and 4).
mod machine;
