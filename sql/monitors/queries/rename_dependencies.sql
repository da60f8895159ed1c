-- rename_dependencies: give dependencies the canonical names that aliases have now; how many.
SELECT hybrid_monitors.rename_dependencies() AS renamed
