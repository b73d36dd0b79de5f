package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/run/serve"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

type consentRotateKeyCmd struct {
	Add    bool `help:"Only add the new key to the file, unused: to copy the file to other machines first."`
	Retire bool `help:"Take the older keys out of the file, if nothing needs them any more."`
	DryRun bool `help:"Change nothing; print what would be done."`
}

func (consentRotateKeyCmd) Help() string {
	return `Makes a new key in the file consent.key, wraps the key of every person with it, gives every record a code under it and signs the
anchor, in all databases of the configuration. It verifies them first. Records, pseudonyms and erasures stay as they are, and proxies
follow the file without a restart. An interrupted run is continued by the next.

Until --retire the older key is in the file and is accepted. With proxies on several machines each has a copy of the file and an anchor
of its own: add the key, copy the file, and run the command on each machine; then retire on each.

  pgconsent consent rotate-key --dry-run
  pgconsent consent rotate-key
  pgconsent consent rotate-key --retire`
}

// rekeyResult says what the command did, or would do, in one database.
type rekeyResult struct {
	Database string `json:"database"`
	registry.OlderKeyUse
}

func (k consentRotateKeyCmd) Run(s *session) error {
	if k.Add && k.Retire {
		return usageError{errors.New("--add begins and --retire ends: choose one")}
	}
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	var registries []*registry.Registry
	names := slices.Sorted(maps.Keys(c.Databases))
	for _, name := range names {
		r, err := serve.OpenRegistry(c, name)
		if err != nil {
			return err
		}
		defer r.Close()
		registries = append(registries, r)
	}
	path := c.Consent.Key
	file, err := registry.ReadKeyFile(path)
	if err != nil {
		return err
	}
	switch {
	case k.Add:
		return k.add(s, path, file)
	case k.Retire:
		return k.retireKeys(s, path, file, registries)
	}
	isFirst := file.NextKey == 0 && len(file.OlderKeys) == 0
	if !k.DryRun {
		if isFirst {
			if err := registry.AddNextKey(path); err != nil {
				return err
			}
		}
		if err := registry.UseNextKey(path); err != nil {
			return err
		}
		if file, err = registry.ReadKeyFile(path); err != nil {
			return err
		}
	}
	key := file.SigningKey
	switch {
	case k.DryRun && file.NextKey != 0:
		key = file.NextKey
	case k.DryRun && isFirst:
		key++
	}
	rekeyResults := []rekeyResult{}
	for i, r := range registries {
		o, err := r.KeyUseOlderThan(s.ctx, key)
		if err == nil && !k.DryRun {
			err = r.Rekey(s.ctx, s.counterProgress(names[i]+": done"))
		}
		if err != nil {
			return fmt.Errorf("database %s: %w", names[i], err)
		}
		rekeyResults = append(rekeyResults, rekeyResult{names[i], o})
	}
	if s.jsonOutput {
		return s.printJSON(map[string]any{"key": key, "dry_run": k.DryRun, "databases": rekeyResults})
	}
	for _, d := range rekeyResults {
		label := "%s: the keys of %d people are wrapped with key %d, %d records have a code under it\n"
		if k.DryRun {
			label = "%s: the keys of %d people would be wrapped with key %d, %d records would get a code under it\n"
		}
		fmt.Fprintf(s.out, label, d.Database, d.Subjects, key, d.Records)
	}
	if !k.DryRun {
		fmt.Fprintf(s.out,
			"nothing here needs older keys any more. Keep a copy of the key file; when every machine uses the "+
				"new key: pgconsent consent rotate-key --retire\n")
	}
	return nil
}

func (k consentRotateKeyCmd) add(s *session, path string, file registry.KeyFile) error {
	if len(file.OlderKeys) > 0 && file.NextKey == 0 {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonConsent,
			"the last rotation is not finished: %s still has older keys", path).
			WithHint("Run pgconsent consent rotate-key, and then pgconsent consent rotate-key --retire.")
	}
	keyID := file.NextKey
	if keyID == 0 {
		keyID = file.SigningKey + 1
	}
	if !k.DryRun {
		if err := registry.AddNextKey(path); err != nil {
			return err
		}
	}
	if s.jsonOutput {
		return s.printJSON(map[string]any{"key": file.SigningKey, "next": keyID, "dry_run": k.DryRun})
	}
	if k.DryRun {
		fmt.Fprintf(s.out, "key %d would be added to %s\n", keyID, path)
		return nil
	}
	fmt.Fprintf(s.out, "key %d is in %s and is not used yet: copy the file to every machine with a proxy, then "+
		"run pgconsent consent rotate-key\n", keyID, path)
	return nil
}

func (k consentRotateKeyCmd) retireKeys(s *session, path string, file registry.KeyFile,
	registries []*registry.Registry) error {
	err := error(nil)
	if k.DryRun {
		for _, r := range registries {
			o, e := r.OlderKeyUse(s.ctx)
			if e != nil {
				return e
			}
			if !o.IsZero() && err == nil {
				err = &registry.KeyInUseError{Database: r.Database, Use: o}
			}
		}
	} else {
		err = registry.RetireOlderKeys(s.ctx, path, registries)
	}
	var inUseError *registry.KeyInUseError
	if errors.As(err, &inUseError) {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonConsent, "%v", inUseError).
			WithHint("Run pgconsent consent rotate-key first: it goes on where it was.")
	}
	if err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]any{"key": file.SigningKey, "retired": file.OlderKeys, "dry_run": k.DryRun})
	}
	var removedKeys []string
	for _, n := range file.OlderKeys {
		removedKeys = append(removedKeys, fmt.Sprint(n))
	}
	switch {
	case len(removedKeys) == 0:
		fmt.Fprintf(s.out, "%s has no older key\n", path)
	case k.DryRun:
		fmt.Fprintf(s.out, "nothing needs key %s: it would be taken out of %s\n", strings.Join(removedKeys, ", "), path)
	default:
		fmt.Fprintf(s.out,
			"key %s is not in the key file any more. Backups of the database from before need it: keep it with "+
				"them, or let both go\n", strings.Join(removedKeys, ", "))
	}
	return nil
}

// counterProgress returns a function that shows on a terminal how many items are done.
func (s *session) counterProgress(label string) func(done, total int) {
	if !isTerminal(s.err) {
		return nil
	}
	return func(done, total int) {
		lineEnd := ""
		if done == total {
			lineEnd = "\n"
		}
		fmt.Fprintf(s.err, "\r%s %s %s", label, formatDoneOf(done, total), lineEnd)
	}
}
