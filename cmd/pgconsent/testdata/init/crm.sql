-- A CRM whose names must be quoted and whose keys have several columns.
CREATE SCHEMA "Sales Data";
CREATE TYPE "ConsentState" AS ENUM ('Pending', 'Granted', 'Withdrawn');
CREATE TABLE "Tenants" ("Id" integer PRIMARY KEY, "Name" text);
CREATE TABLE "Users" ("UserId" integer PRIMARY KEY, "TenantId" integer NOT NULL REFERENCES "Tenants", "Login" text);
CREATE TABLE "Contacts" ("TenantId" integer NOT NULL REFERENCES "Tenants", "ContactNo" bigint NOT NULL, "OwnerId" integer REFERENCES "Users", "Full Name" text, "ConsentStatus" "ConsentState" NOT NULL, "DeletedAt" timestamp, PRIMARY KEY ("TenantId", "ContactNo"));
CREATE TABLE "Deals" ("TenantId" integer NOT NULL, "DealNo" bigint NOT NULL, "Title" text, PRIMARY KEY ("TenantId", "DealNo"));
CREATE TABLE "DealContacts" ("TenantId" integer NOT NULL, "DealNo" bigint NOT NULL, "ContactNo" bigint NOT NULL, PRIMARY KEY ("TenantId", "DealNo", "ContactNo"),
  FOREIGN KEY ("TenantId", "DealNo") REFERENCES "Deals", FOREIGN KEY ("TenantId", "ContactNo") REFERENCES "Contacts");
CREATE TABLE "Sales Data"."Order" ("Order No" bigint PRIMARY KEY, "TenantId" integer NOT NULL, "ContactNo" bigint NOT NULL, "select" text, FOREIGN KEY ("TenantId", "ContactNo") REFERENCES "Contacts");
CREATE TABLE "Sales Data"."Order Lines" ("Order No" bigint NOT NULL REFERENCES "Sales Data"."Order", "Line" integer, "true" text, PRIMARY KEY ("Order No", "Line"));
CREATE TABLE "odd.name" ("UserId" integer);
CREATE TABLE "it's
odd" ("UserId" integer);
CREATE TABLE "Prefs" ("UserId" text PRIMARY KEY, "Value" text);
CREATE TABLE "Currency" ("Code" char(3) PRIMARY KEY, "Name" text);
