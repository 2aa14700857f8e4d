#############################################################################
##
##  GAP computes for programs that run on Ultramarine, and they for GAP.
##
SetPackageInfo( rec(

PackageName := "ultramarine",
Subtitle := "Parallel functions for GAP",
Version := "0.1.0",
Date := "01/01/2026",
License := "MIT OR Apache-2.0",
Status := "dev",

##  The package is a part of the command "ultramarine", and is fetched from
##  nowhere. GAP wants addresses all the same.
PackageWWWHome := "https://localhost/ultramarine/",
README_URL := Concatenation(~.PackageWWWHome, "README.md"),
PackageInfoURL := Concatenation(~.PackageWWWHome, "PackageInfo.g"),
ArchiveURL := Concatenation(~.PackageWWWHome, "ultramarine"),
ArchiveFormats := ".tar.gz",
AbstractHTML := "Parallel functions for GAP, on the processes of a job.",

Dependencies := rec(
  GAP := ">= 4.12",
  NeededOtherPackages := [],
  SuggestedOtherPackages := [],
  ExternalConditions := [],
),

AvailabilityTest := ReturnTrue,
Keywords := [ "parallel" ],

) );
