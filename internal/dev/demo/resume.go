package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"

	"github.com/goccy/go-yaml"
)

// worldDigests are digests of the world's files. The demo's folder stores the digests of the files from which it was
// made, so that a later start can tell which files have changed.
type worldDigests struct {
	Policy string `yaml:"policy"`
	Rows   string `yaml:"rows"` // digest of schema.sql, data.sql and extensions.sql
}

// currentDigests returns the digests of the world's files as they are now.
func (f demoFolder) currentDigests() (worldDigests, error) {
	text, err := f.world.File(f.world.Policy)
	if err != nil {
		return worldDigests{}, err
	}
	rows := sha256.New()
	for _, name := range []string{"extensions.sql", "schema.sql", "data.sql"} {
		sql, err := f.world.File(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return worldDigests{}, err
		}
		rows.Write(sql)
		rows.Write([]byte{0})
	}
	return worldDigests{Policy: hexDigest(text), Rows: hex.EncodeToString(rows.Sum(nil))}, nil
}

// hexDigest returns the SHA-256 of a text in hex.
func hexDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// copyPolicy copies the world's policy into the folder, where users may change it. It stores the policy's digest, and
// rows as the digest of the loaded data.
func (f demoFolder) copyPolicy(rows string) error {
	text, err := f.world.File(f.world.Policy)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.filePath("policy.yaml"), text, 0o644); err != nil {
		return err
	}
	digestsText, err := yaml.Marshal(worldDigests{Policy: hexDigest(text), Rows: rows})
	if err != nil {
		return err
	}
	return os.WriteFile(f.filePath("copied"), digestsText, 0o644)
}

// resume continues with a database that was loaded before. If the user has not changed the policy in the folder, the
// world's policy replaces it. resume returns an error for unexpected states of the folder; startOverHint says how to
// start over.
func (f demoFolder) resume(startOverHint string, progress func(string)) error {
	newDigests, err := f.currentDigests()
	if err != nil {
		return err
	}
	folderPolicy, err := os.ReadFile(f.filePath("policy.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return f.copyPolicy(newDigests.Rows)
	}
	if err != nil {
		return err
	}
	earlierText, err := os.ReadFile(f.filePath("copied"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var earlierDigests worldDigests
	if err := yaml.NewDecoder(bytes.NewReader(earlierText), yaml.Strict()).Decode(&earlierDigests); err != nil {
		return err
	}
	if earlierDigests.Rows != newDigests.Rows {
		progress("schema.sql or data.sql has changed since the world was loaded; the database is as it was: " +
			startOverHint + " loads them at the next start")
	}
	switch {
	case earlierDigests.Policy == newDigests.Policy:
		return nil
	case hexDigest(folderPolicy) == earlierDigests.Policy:
		progress("the world's policy has changed: taking it")
		return f.copyPolicy(earlierDigests.Rows)
	case hexDigest(folderPolicy) != newDigests.Policy:
		progress("the world's policy has changed, and so has policy.yaml in " + f.dir +
			", which is kept: delete it to take the world's")
	}
	return nil
}
