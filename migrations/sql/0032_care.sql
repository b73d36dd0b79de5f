-- care makes the settings hold with which a statement is planned with care, until the transaction ends or goes back. It is declared IMMUTABLE, which it is not: so the planner
-- evaluates it as it is bound, and nothing has to be executed. An Execute would show: as of PostgreSQL 18 what comes behind one in a pipeline is in a
-- transaction block.
CREATE FUNCTION pgconsent_gate.care() RETURNS pg_catalog.bool LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
BEGIN
  PERFORM pg_catalog.set_config('cpu_operator_cost', '0', true), pg_catalog.set_config('enable_bitmapscan', 'off', true), pg_catalog.set_config('plan_cache_mode', 'force_custom_plan', true);
  RETURN true;
END $$;
REVOKE ALL ON FUNCTION pgconsent_gate.care() FROM PUBLIC;
