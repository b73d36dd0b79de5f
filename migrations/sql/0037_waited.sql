-- unmoved is true of a row version, or raises. written is its xmin. An UPDATE, a DELETE or a SELECT FOR UPDATE that has waited for another transaction goes on with the row
-- that this one has left (EvalPlanQual in PostgreSQL's execMain.c), but asks who has consented by the snapshot from before it waited. So what
-- this snapshot does not show may be changed only if nothing that decides who sees a row was committed since. noted tells that triggers tell of all that does.
-- STABLE: its snapshot is that of the statement.
CREATE FUNCTION pgconsent_gate.unmoved(written pg_catalog.xid, noted pg_catalog.bool) RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  taken  pg_catalog.pg_snapshot := pg_catalog.pg_current_snapshot();
  upto   pg_catalog.int8 := pg_catalog.pg_snapshot_xmax(taken)::pg_catalog.text::pg_catalog.int8;
  behind pg_catalog.int8 := (upto OPERATOR(pg_catalog.-) written::pg_catalog.text::pg_catalog.int8) OPERATOR(pg_catalog.&) 4294967295;
  writer pg_catalog.xid8;
BEGIN
  -- Of the transactions with this number the last one that the snapshot can show: half of all numbers are behind it, half before it.
  IF behind OPERATOR(pg_catalog.>) 0 AND behind OPERATOR(pg_catalog.<) 2147483648 THEN
    writer := GREATEST(upto OPERATOR(pg_catalog.-) behind, 3)::pg_catalog.text::pg_catalog.xid8;
    IF pg_catalog.pg_visible_in_snapshot(writer, taken) THEN
      RETURN true;
    END IF;
  END IF;
  -- A number that is further ahead than a billion is that of a row which was frozen long ago, and keeps it.
  IF behind OPERATOR(pg_catalog.>=) 2147483648 AND behind OPERATOR(pg_catalog.<) 3221225472 THEN
    RETURN true;
  END IF;
  IF NOT noted THEN
    writer := (CASE WHEN behind OPERATOR(pg_catalog.<) 2147483648 THEN upto OPERATOR(pg_catalog.-) behind
      ELSE upto OPERATOR(pg_catalog.-) behind OPERATOR(pg_catalog.+) 4294967296 END)::pg_catalog.text::pg_catalog.xid8;
    BEGIN
      IF pg_catalog.pg_xact_status(writer) OPERATOR(pg_catalog.=) 'in progress' THEN -- our own: of another it is locked
        RETURN true;
      END IF;
    EXCEPTION WHEN invalid_parameter_value THEN -- nobody has had this number yet: frozen as well
      RETURN true;
    END;
  ELSIF NOT pgconsent.changed_since(taken) THEN
    RETURN true;
  END IF;
  RAISE EXCEPTION 'pgconsent: consent has changed while the statement waited' USING ERRCODE = '40001';
END $$;
REVOKE ALL ON FUNCTION pgconsent_gate.unmoved(pg_catalog.xid, pg_catalog.bool) FROM PUBLIC;
