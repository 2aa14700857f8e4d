//! Skeletons in whole jobs, whose PEs are threads: their results, the number of tasks, and the PEs
//! that run them.

mod bsp;
mod bsp_folder;
mod bsp_moves;
mod common;
mod dag;
mod dag_extents;
mod dag_picture;
mod depth;
mod divide;
mod divide_thieves;
mod journal;
mod maps;
mod memo;
mod orbit;
mod search;
mod skeletons;
mod table;
