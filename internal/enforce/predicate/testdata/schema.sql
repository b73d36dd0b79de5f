CREATE TYPE state AS ENUM ('open', 'shut');
CREATE TABLE subjects (id int PRIMARY KEY, status text);
CREATE TABLE items (id int PRIMARY KEY, owner bigint, state state, subject int, parent int);
CREATE TABLE links (item int, subject int, role varchar(10));
CREATE TABLE parents (id int PRIMARY KEY, owner bigint, status text);
CREATE TABLE parent_links (parent int, subject int);
