-- one_upkeep: that there is to be one job of upkeep.
SELECT 'upkeep' AS one
