#############################################################################
##
##  GAP computes for programs that run on Ultramarine.
##
SetPackageInfo( rec(

PackageName := "ultramarine",
Subtitle := "GAP computes for programs on Ultramarine",
Version := "0.1.0",
Date := "01/01/2026",
License := "MIT OR Apache-2.0",
Status := "dev",

Dependencies := rec(
  GAP := ">= 4.12",
  NeededOtherPackages := [],
  SuggestedOtherPackages := [],
  ExternalConditions := [],
),

AvailabilityTest := ReturnTrue,
Keywords := [ "parallel" ],

) );
