// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// blockBytes divides the size of every database of etcd. The hash that follows it makes the difference.
	blockBytes = 512
	// openTimeout is how long another process may keep the file to itself.
	openTimeout = 2 * time.Second
)

// File is a snapshot of an etcd that was checked.
type File struct {
	// Path is the path of the file, Bytes its size, and SHA256 the hash of the database, which the file ends with.
	Path   string
	Bytes  int64
	SHA256 string
	// Revision is the revision of the store.
	Revision int64

	db *bolt.DB
}

// Open checks a snapshot: its hash, its structure as a database, and that it is one of etcd.
func Open(path string) (*File, error) {
	f := &File{Path: path}
	if err := f.hash(); err != nil {
		return nil, err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return nil, fmt.Errorf("%s is not a snapshot of etcd: %w", path, err)
	}
	f.db = db
	if err := db.View(f.check); err != nil {
		return nil, errors.Join(fmt.Errorf("%s %w", path, err), db.Close())
	}
	return f, nil
}

// Close ends the use of the file.
func (f *File) Close() error { return f.db.Close() }

// hash is checked before anything else, because the database trusts its pages.
func (f *File) hash() (err error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f.Bytes = info.Size()
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", f.Path)
	case f.Bytes == 0:
		return fmt.Errorf("%s is empty", f.Path)
	case f.Bytes%blockBytes != sha256.Size || f.Bytes < blockBytes:
		return fmt.Errorf("%s does not end with a hash: it was cut off, or neither \"store backup\" nor \"etcdctl snapshot save\" has made it",
			f.Path)
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, file, f.Bytes-sha256.Size); err != nil {
		return fmt.Errorf("reading %s: %w", f.Path, err)
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(file, want); err != nil {
		return fmt.Errorf("reading the hash of %s: %w", f.Path, err)
	}
	if got := sum.Sum(nil); !bytes.Equal(got, want) {
		return fmt.Errorf("%s is damaged: its content has the hash %x, but it ends with %x", f.Path, got, want)
	}
	f.SHA256 = hex.EncodeToString(want)
	return nil
}

func (f *File) check(tx *bolt.Tx) error {
	for _, name := range []string{schema.Key.String(), schema.Meta.String()} {
		if tx.Bucket([]byte(name)) == nil {
			return fmt.Errorf("is not a snapshot of etcd: the database has no bucket %q", name)
		}
	}
	var first error
	count := 0
	for err := range tx.Check() {
		if count++; first == nil {
			first = err
		}
	}
	if first != nil {
		return fmt.Errorf("is damaged: the database has %d errors, the first is: %w", count, first)
	}
	var err error
	f.Revision, err = storeRevision(tx)
	return err
}

// storeRevision returns the revision of the store as etcd finds it when it starts: that of the last change, unless this was a
// deletion and its history was dropped.
func storeRevision(tx *bolt.Tx) (int64, error) {
	revision := int64(1) // of an empty store
	positions := [][]byte{
		tx.Bucket(schema.Meta.Name()).Get(schema.ScheduledCompactKeyName),
		tx.Bucket(schema.Meta.Name()).Get(schema.FinishedCompactKeyName),
	}
	last, _ := tx.Bucket(schema.Key.Name()).Cursor().Last()
	for _, position := range append(positions, last) {
		if position == nil {
			continue
		}
		at, _, err := parseRevision(position)
		if err != nil {
			return 0, err
		}
		revision = max(revision, at)
	}
	return revision, nil
}

const (
	revisionBytes  = 17 // main revision, underscore, sub-revision
	tombstoneBytes = revisionBytes + 1
)

// parseRevision reads the key under which etcd stores a change. The library panics on one that is malformed.
func parseRevision(key []byte) (revision int64, tombstone bool, err error) {
	if len(key) != revisionBytes && len(key) != tombstoneBytes || key[8] != '_' {
		return 0, false, fmt.Errorf("is damaged: %x is not the revision of a change", key)
	}
	return int64(binary.BigEndian.Uint64(key)), len(key) == tombstoneBytes, nil
}

// Entry is a key and its value.
type Entry struct {
	Key         string
	Value       []byte
	ModRevision int64
}

// ForEach calls a function for every key below a prefix, in the order of its last change. The value is valid during the call only.
func (f *File) ForEach(prefix string, fn func(Entry) error) error {
	return f.db.View(func(tx *bolt.Tx) error {
		live, err := last(tx, prefix)
		if err != nil {
			return fmt.Errorf("%s %w", f.Path, err)
		}
		return changes(tx, func(position []byte, tombstone bool, kv *mvccpb.KeyValue) error {
			if tombstone || live[string(kv.Key)] != [revisionBytes]byte(position) {
				return nil
			}
			return fn(Entry{Key: string(kv.Key), Value: kv.Value, ModRevision: kv.ModRevision})
		})
	})
}

// last returns where the present value of every key below a prefix is.
func last(tx *bolt.Tx, prefix string) (map[string][revisionBytes]byte, error) {
	live := map[string][revisionBytes]byte{}
	return live, changes(tx, func(position []byte, tombstone bool, kv *mvccpb.KeyValue) error {
		switch {
		case !bytes.HasPrefix(kv.Key, []byte(prefix)):
		case tombstone:
			delete(live, string(kv.Key))
		default:
			live[string(kv.Key)] = [revisionBytes]byte(position)
		}
		return nil
	})
}

// changes calls a function for every change in the history, the oldest first. A restore adds one without a key.
func changes(tx *bolt.Tx, fn func(position []byte, tombstone bool, kv *mvccpb.KeyValue) error) error {
	return tx.Bucket(schema.Key.Name()).ForEach(func(position, value []byte) error {
		_, tombstone, err := parseRevision(position)
		if err != nil {
			return err
		}
		kv := &mvccpb.KeyValue{}
		if err := proto.Unmarshal(value, kv); err != nil {
			return fmt.Errorf("is damaged: the change at %x: %w", position, err)
		}
		if len(kv.Key) == 0 {
			return nil
		}
		return fn(position, tombstone, kv)
	})
}

// Witness returns the key of the witness below the prefix of a server, and nil if there is none.
func (f *File) Witness(prefix string) (*witness.Found, error) {
	var found *witness.Found
	name := WitnessKey(prefix)
	err := f.ForEach(name, func(e Entry) error {
		if e.Key != name {
			return nil
		}
		key, err := witness.DecodeKey(e.Value)
		found = &witness.Found{Key: key, ModRevision: e.ModRevision}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// WitnessKey returns the name of the key of the witness below the prefix of a server.
func WitnessKey(prefix string) string { return prefix + "/" + witness.KeyName }
