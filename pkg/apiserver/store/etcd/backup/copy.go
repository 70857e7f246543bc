// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// Copy writes a backup of the database of a member that does not run to a file that does not exist yet. What a member that was killed had
// written in its last tenth of a second may be missing: it is in the log of etcd only.
func Copy(database, path string) (saved *File, err error) {
	db, err := bolt.Open(database, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return nil, fmt.Errorf("opening the database of the member: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	err = db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(io.MultiWriter(file, sum))
		return err
	})
	if err == nil {
		_, err = file.Write(sum.Sum(nil)) // as in a snapshot of etcd
	}
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		saved, err = Open(path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return saved, errors.Join(saved.Close(), syncDir(filepath.Dir(path)))
}
