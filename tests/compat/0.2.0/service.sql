BEGIN TRANSACTION;
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, client TEXT NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL,
    version INTEGER NOT NULL, program TEXT NOT NULL, suite TEXT NOT NULL, samples INTEGER NOT NULL,
    notice TEXT, created REAL NOT NULL, ended REAL, outcome TEXT, reason TEXT NOT NULL DEFAULT '',
    document TEXT NOT NULL
);
INSERT INTO "jobs" VALUES('0a','cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','request','digits',3,'abababababababababababababababababababababababababababababababab','gmw linear exact',2,NULL,1800000000.0,1800000004.0,'done','','{"id": "0a", "kind": "request", "model": "digits", "version": 3, "program": "abababababababababababababababababababababababababababababababab", "suite": "gmw", "security": "semi-honest", "rounds": "log", "samples": 2, "notice": null, "state": "ended", "done": 2, "go": [], "outcome": "done", "reason": "", "sequence": 1}');
INSERT INTO "jobs" VALUES('0b','cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','request','digits',3,'abababababababababababababababababababababababababababababababab','gmw linear exact',2,NULL,1800000000.0,NULL,NULL,'','{"id": "0b", "kind": "request", "model": "digits", "version": 3, "program": "abababababababababababababababababababababababababababababababab", "suite": "gmw", "security": "semi-honest", "rounds": "log", "samples": 2, "notice": null, "state": "queued", "done": 0, "go": [], "outcome": null, "reason": "", "sequence": 1}');
CREATE TABLE profiles (
    model TEXT, suite TEXT, batch INTEGER, phase TEXT, cores INTEGER NOT NULL,
    memory INTEGER NOT NULL, seconds REAL NOT NULL, material INTEGER NOT NULL,
    PRIMARY KEY (model, suite, batch, phase)
);
INSERT INTO "profiles" VALUES('digits/3','gmw linear exact',2,'on',1,1048576,1.5,2048);
CREATE TABLE runs (
    job TEXT PRIMARY KEY, request TEXT NOT NULL, phase TEXT NOT NULL, model TEXT NOT NULL,
    suite TEXT NOT NULL, samples INTEGER NOT NULL, machine TEXT NOT NULL, cores TEXT NOT NULL,
    started REAL NOT NULL, ended REAL NOT NULL, seconds REAL NOT NULL, memory INTEGER NOT NULL,
    failure TEXT
);
INSERT INTO "runs" VALUES('0a-1','0a','on','digits/3','gmw linear exact',2,'local','0,1',1800000001.0,1800000003.0,1.5,1048576,NULL);
CREATE INDEX jobs_open ON jobs (ended) WHERE ended IS NULL;
COMMIT;
PRAGMA user_version = 1;
