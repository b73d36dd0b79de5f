INSERT INTO people VALUES ('ada'), ('bob');
INSERT INTO notes VALUES (1, 'ada', 'likes walks'), (2, 'ada', 'sleeps late'), (3, 'bob', 'plays chess');
