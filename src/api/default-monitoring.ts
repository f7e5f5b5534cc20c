/** Name of the ConfigMap (and Secret) with the default monitoring queries in a cluster's namespace. */
export const defaultMonitoringName = "cnpg-default-monitoring";

/** Key of the ConfigMap that holds them. */
export const defaultMonitoringKey = "queries";

/**
 * The queries that every cluster's exporter runs unless they are turned off. Names, labels and types are the compatible
 * ones; no query can give two rows with the same labels.
 */
export const defaultMonitoringQueries = `backends:
  query: |
    SELECT coalesce(datname, '') AS datname
         , coalesce(usename, '') AS usename
         , coalesce(application_name, '') AS application_name
         , state
         , pg_catalog.count(*) AS total
         , coalesce(pg_catalog.max(extract(epoch FROM pg_catalog.now() - xact_start)), 0) AS max_tx_duration_seconds
      FROM pg_catalog.pg_stat_activity
     WHERE state IS NOT NULL AND usename IS NOT NULL
     GROUP BY 1, 2, 3, 4
  metrics:
    - datname: { usage: LABEL, description: "Database the backends are connected to" }
    - usename: { usage: LABEL, description: "Role the backends run as" }
    - application_name: { usage: LABEL, description: "Application the clients name" }
    - state: { usage: LABEL, description: "What the backends do" }
    - total: { usage: GAUGE, description: "Number of backends" }
    - max_tx_duration_seconds: { usage: GAUGE, description: "Age of the oldest transaction among them, in seconds" }

backends_waiting:
  query: |
    SELECT pg_catalog.count(DISTINCT pid) AS total FROM pg_catalog.pg_locks WHERE NOT granted
  metrics:
    - total: { usage: GAUGE, description: "Number of backends that wait for a lock" }

pg_database:
  query: |
    SELECT datname
         , pg_catalog.pg_database_size(datname) AS size_bytes
         , pg_catalog.age(datfrozenxid) AS xid_age
         , pg_catalog.mxid_age(datminmxid) AS mxid_age
      FROM pg_catalog.pg_database
     WHERE datallowconn
  metrics:
    - datname: { usage: LABEL, description: "Name of the database" }
    - size_bytes: { usage: GAUGE, description: "Disk space of the database, in bytes" }
    - xid_age: { usage: GAUGE, description: "Transactions since its frozen transaction id" }
    - mxid_age: { usage: GAUGE, description: "Multixacts since its minimum multixact id" }

pg_postmaster:
  query: |
    SELECT pg_catalog.pg_postmaster_start_time() AS start_time
  metrics:
    - start_time: { usage: GAUGE, description: "When PostgreSQL started, in seconds since the epoch" }

pg_replication:
  query: |
    SELECT CASE
             WHEN NOT pg_catalog.pg_is_in_recovery() THEN 0
             WHEN pg_catalog.pg_last_wal_receive_lsn() = pg_catalog.pg_last_wal_replay_lsn() THEN 0
             ELSE greatest(0, extract(epoch FROM pg_catalog.now() - pg_catalog.pg_last_xact_replay_timestamp()))
           END AS lag
         , pg_catalog.pg_is_in_recovery() AS in_recovery
         , EXISTS (SELECT FROM pg_catalog.pg_stat_wal_receiver) AS is_wal_receiver_up
         , (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication) AS streaming_replicas
  metrics:
    - lag: { usage: GAUGE, description: "Seconds by which replay is behind the primary" }
    - in_recovery: { usage: GAUGE, description: "1 on a standby" }
    - is_wal_receiver_up: { usage: GAUGE, description: "1 while a WAL receiver runs" }
    - streaming_replicas: { usage: GAUGE, description: "Number of servers that stream from this one" }

pg_replication_slots:
  query: |
    SELECT slot_name
         , slot_type
         , coalesce(database, '') AS database
         , active
         , pg_catalog.pg_wal_lsn_diff(
             CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
                  ELSE pg_catalog.pg_current_wal_lsn() END
           , restart_lsn) AS pg_wal_lsn_diff
      FROM pg_catalog.pg_replication_slots
     WHERE NOT temporary
  metrics:
    - slot_name: { usage: LABEL, description: "Name of the slot" }
    - slot_type: { usage: LABEL, description: "physical or logical" }
    - database: { usage: LABEL, description: "Database of a logical slot" }
    - active: { usage: GAUGE, description: "1 while somebody uses the slot" }
    - pg_wal_lsn_diff: { usage: GAUGE, description: "Bytes of WAL that the slot holds back" }

pg_stat_archiver:
  predicate_query: |
    SELECT NOT pg_catalog.pg_is_in_recovery()
        OR pg_catalog.current_setting('archive_mode') = 'always'
  query: |
    SELECT archived_count
         , failed_count
         , coalesce(extract(epoch FROM pg_catalog.now() - last_archived_time), -1) AS seconds_since_last_archival
         , coalesce(extract(epoch FROM pg_catalog.now() - last_failed_time), -1) AS seconds_since_last_failure
         , coalesce(extract(epoch FROM last_archived_time), -1) AS last_archived_time
         , coalesce(extract(epoch FROM last_failed_time), -1) AS last_failed_time
         , CASE WHEN last_archived_wal ~ '^[0-9A-F]{24}'
                THEN ('x' || pg_catalog.substr(last_archived_wal, 9, 16))::bit(64)::bigint ELSE -1 END AS last_archived_wal_start_lsn
         , CASE WHEN last_failed_wal ~ '^[0-9A-F]{24}'
                THEN ('x' || pg_catalog.substr(last_failed_wal, 9, 16))::bit(64)::bigint ELSE -1 END AS last_failed_wal_start_lsn
         , coalesce(extract(epoch FROM stats_reset), -1) AS stats_reset_time
      FROM pg_catalog.pg_stat_archiver
  metrics:
    - archived_count: { usage: COUNTER, description: "WAL files archived" }
    - failed_count: { usage: COUNTER, description: "Failed attempts to archive a WAL file" }
    - seconds_since_last_archival: { usage: GAUGE, description: "Seconds since a WAL file was archived, -1 when never" }
    - seconds_since_last_failure: { usage: GAUGE, description: "Seconds since archiving failed, -1 when never" }
    - last_archived_time: { usage: GAUGE, description: "When a WAL file was archived last, in seconds since the epoch" }
    - last_failed_time: { usage: GAUGE, description: "When archiving failed last, in seconds since the epoch" }
    - last_archived_wal_start_lsn: { usage: GAUGE, description: "Number of the last archived WAL file, timeline left out" }
    - last_failed_wal_start_lsn: { usage: GAUGE, description: "Number of the last WAL file that failed, timeline left out" }
    - stats_reset_time: { usage: GAUGE, description: "When these counters started, in seconds since the epoch" }

pg_stat_bgwriter:
  runonserver: "<17.0.0"
  query: |
    SELECT checkpoints_timed
         , checkpoints_req
         , checkpoint_write_time
         , checkpoint_sync_time
         , buffers_checkpoint
         , buffers_clean
         , maxwritten_clean
         , buffers_backend
         , buffers_backend_fsync
         , buffers_alloc
      FROM pg_catalog.pg_stat_bgwriter
  metrics:
    - checkpoints_timed: { usage: COUNTER, description: "Checkpoints started by the clock" }
    - checkpoints_req: { usage: COUNTER, description: "Checkpoints started on request" }
    - checkpoint_write_time: { usage: COUNTER, description: "Milliseconds that checkpoints spent writing" }
    - checkpoint_sync_time: { usage: COUNTER, description: "Milliseconds that checkpoints spent syncing" }
    - buffers_checkpoint: { usage: COUNTER, description: "Buffers written by checkpoints" }
    - buffers_clean: { usage: COUNTER, description: "Buffers written by the background writer" }
    - maxwritten_clean: { usage: COUNTER, description: "Rounds the background writer broke off at its limit" }
    - buffers_backend: { usage: COUNTER, description: "Buffers that backends wrote themselves" }
    - buffers_backend_fsync: { usage: COUNTER, description: "Syncs that backends did themselves" }
    - buffers_alloc: { usage: COUNTER, description: "Buffers allocated" }

pg_stat_bgwriter_17:
  runonserver: ">=17.0.0"
  name: pg_stat_bgwriter
  query: |
    SELECT buffers_clean
         , maxwritten_clean
         , buffers_alloc
         , extract(epoch FROM stats_reset) AS stats_reset_time
      FROM pg_catalog.pg_stat_bgwriter
  metrics:
    - buffers_clean: { usage: COUNTER, description: "Buffers written by the background writer" }
    - maxwritten_clean: { usage: COUNTER, description: "Rounds the background writer broke off at its limit" }
    - buffers_alloc: { usage: COUNTER, description: "Buffers allocated" }
    - stats_reset_time: { usage: GAUGE, description: "When these counters started, in seconds since the epoch" }

pg_stat_checkpointer:
  runonserver: ">=17.0.0"
  query: |
    SELECT num_timed AS checkpoints_timed
         , num_requested AS checkpoints_req
         , restartpoints_timed
         , restartpoints_req
         , restartpoints_done
         , write_time
         , sync_time
         , buffers_written
         , extract(epoch FROM stats_reset) AS stats_reset_time
      FROM pg_catalog.pg_stat_checkpointer
  metrics:
    - checkpoints_timed: { usage: COUNTER, description: "Checkpoints started by the clock" }
    - checkpoints_req: { usage: COUNTER, description: "Checkpoints started on request" }
    - restartpoints_timed: { usage: COUNTER, description: "Restart points started by the clock or after a failed attempt" }
    - restartpoints_req: { usage: COUNTER, description: "Restart points asked for" }
    - restartpoints_done: { usage: COUNTER, description: "Restart points performed" }
    - write_time: { usage: COUNTER, description: "Milliseconds spent writing" }
    - sync_time: { usage: COUNTER, description: "Milliseconds spent syncing" }
    - buffers_written: { usage: COUNTER, description: "Buffers written by checkpoints and restart points" }
    - stats_reset_time: { usage: GAUGE, description: "When these counters started, in seconds since the epoch" }

pg_stat_database:
  query: |
    SELECT coalesce(datname, '') AS datname
         , xact_commit
         , xact_rollback
         , blks_read
         , blks_hit
         , tup_returned
         , tup_fetched
         , tup_inserted
         , tup_updated
         , tup_deleted
         , conflicts
         , temp_files
         , temp_bytes
         , deadlocks
         , blk_read_time
         , blk_write_time
      FROM pg_catalog.pg_stat_database
  metrics:
    - datname: { usage: LABEL, description: "Name of the database, empty for shared objects" }
    - xact_commit: { usage: COUNTER, description: "Transactions committed" }
    - xact_rollback: { usage: COUNTER, description: "Transactions rolled back" }
    - blks_read: { usage: COUNTER, description: "Blocks read from disk" }
    - blks_hit: { usage: COUNTER, description: "Blocks found in the buffer cache" }
    - tup_returned: { usage: COUNTER, description: "Live rows read by scans" }
    - tup_fetched: { usage: COUNTER, description: "Live rows fetched by index" }
    - tup_inserted: { usage: COUNTER, description: "Rows inserted" }
    - tup_updated: { usage: COUNTER, description: "Rows updated" }
    - tup_deleted: { usage: COUNTER, description: "Rows deleted" }
    - conflicts: { usage: COUNTER, description: "Queries cancelled because of recovery" }
    - temp_files: { usage: COUNTER, description: "Temporary files made" }
    - temp_bytes: { usage: COUNTER, description: "Bytes written to temporary files" }
    - deadlocks: { usage: COUNTER, description: "Deadlocks found" }
    - blk_read_time: { usage: COUNTER, description: "Milliseconds that backends spent reading blocks" }
    - blk_write_time: { usage: COUNTER, description: "Milliseconds that backends spent writing blocks" }

pg_stat_replication:
  primary: true
  query: |
    SELECT coalesce(usename, '') AS usename
         , coalesce(application_name, '') AS application_name
         , coalesce(client_addr::text, '') AS client_addr
         , coalesce(client_port::text, '') AS client_port
         , extract(epoch FROM pg_catalog.min(backend_start)) AS backend_start
         , coalesce(pg_catalog.max(pg_catalog.age(backend_xmin)), 0) AS backend_xmin_age
         , pg_catalog.max(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), sent_lsn)) AS sent_diff_bytes
         , pg_catalog.max(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), write_lsn)) AS write_diff_bytes
         , pg_catalog.max(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), flush_lsn)) AS flush_diff_bytes
         , pg_catalog.max(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), replay_lsn)) AS replay_diff_bytes
         , coalesce(pg_catalog.max(extract(epoch FROM write_lag)), 0) AS write_lag_seconds
         , coalesce(pg_catalog.max(extract(epoch FROM flush_lag)), 0) AS flush_lag_seconds
         , coalesce(pg_catalog.max(extract(epoch FROM replay_lag)), 0) AS replay_lag_seconds
      FROM pg_catalog.pg_stat_replication
     GROUP BY 1, 2, 3, 4
  metrics:
    - usename: { usage: LABEL, description: "Role of the standby" }
    - application_name: { usage: LABEL, description: "Name of the standby" }
    - client_addr: { usage: LABEL, description: "Address of the standby" }
    - client_port: { usage: LABEL, description: "Port of the standby" }
    - backend_start: { usage: COUNTER, description: "When it connected, in seconds since the epoch" }
    - backend_xmin_age: { usage: COUNTER, description: "Age of the oldest transaction it still needs" }
    - sent_diff_bytes: { usage: GAUGE, description: "Bytes of WAL not sent to it" }
    - write_diff_bytes: { usage: GAUGE, description: "Bytes of WAL not written by it" }
    - flush_diff_bytes: { usage: GAUGE, description: "Bytes of WAL not flushed by it" }
    - replay_diff_bytes: { usage: GAUGE, description: "Bytes of WAL not replayed by it" }
    - write_lag_seconds: { usage: GAUGE, description: "Seconds until it confirmed the last write" }
    - flush_lag_seconds: { usage: GAUGE, description: "Seconds until it confirmed the last flush" }
    - replay_lag_seconds: { usage: GAUGE, description: "Seconds until it confirmed the last replay" }

pg_settings:
  query: |
    SELECT name
         , CASE setting WHEN 'on' THEN '1' WHEN 'off' THEN '0' ELSE setting END AS setting
      FROM pg_catalog.pg_settings
     WHERE vartype IN ('integer', 'real', 'bool')
     ORDER BY name
  metrics:
    - name: { usage: LABEL, description: "Name of the setting" }
    - setting: { usage: GAUGE, description: "Its value, 1 and 0 for on and off" }

pg_extensions:
  target_databases: ["*"]
  query: |
    SELECT pg_catalog.current_database() AS datname
         , e.extname
         , coalesce(a.default_version, '') AS default_version
         , e.extversion AS installed_version
         , a.default_version IS DISTINCT FROM e.extversion AND a.default_version IS NOT NULL AS update_available
      FROM pg_catalog.pg_extension AS e
      LEFT JOIN pg_catalog.pg_available_extensions AS a ON a.name = e.extname
  metrics:
    - datname: { usage: LABEL, description: "Name of the database" }
    - extname: { usage: LABEL, description: "Name of the extension" }
    - default_version: { usage: LABEL, description: "Version that would be installed now" }
    - installed_version: { usage: LABEL, description: "Version that is installed" }
    - update_available: { usage: GAUGE, description: "1 when the two differ" }
`;
