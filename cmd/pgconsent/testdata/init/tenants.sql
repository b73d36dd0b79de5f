-- Rows of several insurers, which no word of ours names: each table says by a key whose a row is.
CREATE TABLE insurers (code char(4) PRIMARY KEY, name text NOT NULL);
CREATE TABLE policies (insurer char(4) NOT NULL REFERENCES insurers, number text, premium numeric, PRIMARY KEY (insurer, number));
CREATE TABLE losses (id bigint PRIMARY KEY, insurer char(4) NOT NULL REFERENCES insurers, number text, body text, FOREIGN KEY (insurer, number) REFERENCES policies);
CREATE TABLE tariffs (insurer char(4) NOT NULL REFERENCES insurers, line text, rate numeric, PRIMARY KEY (insurer, line));
CREATE TABLE offers (id bigint PRIMARY KEY, tariff_line text, sum numeric);
