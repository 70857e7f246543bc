// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
	"k8s.io/klog/v2"
)

const (
	// RevisionBump is how far a restore moves the revision on, so that no revision is used twice: more writes than happen between a
	// backup and its restore. Everything up to there is marked as compacted, so that clients that have seen more than the backup
	// holds list again. A watch from a revision that is yet to come would be accepted, and silently miss what happens until then.
	RevisionBump = 1_000_000_000

	// restoringDir is where a restore prepares the files of the member. One that is left over belongs to a restore that was killed.
	restoringDir = memberDir + ".restoring"
)

// ErrNotEmpty is returned when a restore would replace data.
var ErrNotEmpty = errors.New("already has data")

// Restore makes the files of a member of a snapshot, which must have been checked. They appear at once or not at all. Data that exists
// gets another name in the data directory; without one it is not touched, and nothing is restored. Restore returns the revision of
// the restored store.
func Restore(file, dataDir, aside string) (int64, error) {
	return restoreThrough(file, dataDir, aside, func(string) {})
}

// restoreThrough is Restore. It calls a function at each point after which the files on the disk differ; a test ends the process there.
func restoreThrough(file, dataDir, aside string, reach func(point string)) (int64, error) {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return 0, fmt.Errorf("resolving %s: %w", dataDir, err)
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return 0, err
	}
	defer lock.release()
	final, temporary := filepath.Join(dir, memberDir), filepath.Join(dir, restoringDir)
	exists := checkEmpty(final)
	if exists != nil && (aside == "" || !errors.Is(exists, ErrNotEmpty)) {
		return 0, exists
	}
	if err := os.RemoveAll(temporary); err != nil {
		return 0, fmt.Errorf("removing what an interrupted restore has left: %w", err)
	}
	reach("begun")
	revision, err := restore(file, dir, temporary, reach)
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(temporary))
	}
	if exists != nil {
		if err := os.Rename(final, filepath.Join(dir, aside)); err != nil {
			return 0, errors.Join(fmt.Errorf("moving the data away: %w", err), os.RemoveAll(temporary))
		}
		reach("moved away")
	}
	if err := os.Rename(temporary, final); err != nil {
		return 0, fmt.Errorf("moving the restored files into place: %w", err)
	}
	reach("moved into place")
	return revision, syncPath(dir)
}

// Database is the file with the database of the member in a data directory.
func Database(dataDir string) string { return databaseOf(filepath.Join(dataDir, memberDir)) }

func databaseOf(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

// ErrNoData is returned when there is no data to move.
var ErrNoData = errors.New("has no data")

// MoveAside gives the data of a member another name in the data directory, so that the member joins the others as a new one.
func MoveAside(dataDir, aside string) error {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return fmt.Errorf("resolving %s: %w", dataDir, err)
	}
	data := filepath.Join(dir, memberDir)
	if err := checkEmpty(data); err == nil {
		return fmt.Errorf("%s %w", dir, ErrNoData)
	} else if !errors.Is(err, ErrNotEmpty) {
		return err
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	defer lock.release()
	if err := os.Rename(data, filepath.Join(dir, aside)); err != nil {
		return fmt.Errorf("moving the data away: %w", err)
	}
	return syncPath(dir)
}

// CheckRestorable makes sure that Restore would find a directory that it can use. It creates the directory if need be.
func CheckRestorable(dataDir, aside string) error {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return fmt.Errorf("resolving %s: %w", dataDir, err)
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	defer lock.release()
	if err := checkEmpty(filepath.Join(dir, memberDir)); aside == "" || !errors.Is(err, ErrNotEmpty) {
		return err
	}
	return nil
}

func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking for data: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("%s %w", dir, ErrNotEmpty)
	}
	return nil
}

func restore(file, dir, temporary string, reach func(point string)) (int64, error) {
	logger := zap.New(newLogCore(klog.Background().WithName("etcd")))
	if err := snapshot.NewV3(logger).Restore(snapshot.RestoreConfig{
		SnapshotPath:        file,
		OutputDataDir:       temporary,
		Name:                memberName,
		PeerURLs:            []string{peerURL.String()},
		InitialCluster:      memberName + "=" + peerURL.String(),
		InitialClusterToken: newToken(),
		RevisionBump:        RevisionBump,
		MarkCompacted:       true, // otherwise the revision is not moved either
	}); err != nil {
		return 0, fmt.Errorf("restoring %s: %w", file, err)
	}
	reach("written")
	revision, err := latestRevision(databaseOf(temporary))
	if err != nil {
		return 0, err
	}
	if revision < RevisionBump {
		return 0, fmt.Errorf("restoring %s: the revision is %d, not beyond %d", file, revision, RevisionBump)
	}
	return revision, handOver(dir, temporary, reach)
}

// latestRevision reads the highest revision of a database that no process uses.
func latestRevision(path string) (revision int64, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return 0, fmt.Errorf("opening the restored database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bolt.Tx) error {
		if bucket := tx.Bucket(schema.Key.Name()); bucket != nil {
			if last, _ := bucket.Cursor().Last(); last != nil {
				revision = mvcc.BytesToRev(last).Main
			}
		}
		return nil
	})
	return revision, err
}

// handOver gives the files to the owner of the data directory, since a restore by root must leave what the server can read, and
// makes sure that they are on the disk.
func handOver(dir, temporary string, reach func(point string)) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	give := known && os.Geteuid() == 0 && owner.Uid != 0
	fn := func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if give {
			if err := os.Lchown(path, int(owner.Uid), int(owner.Gid)); err != nil {
				return fmt.Errorf("giving the restored files to the owner of %s: %w", dir, err)
			}
		}
		if err := syncPath(path); err != nil {
			return err
		}
		reach("synced " + filepath.Base(path))
		return nil
	}
	if err := filepath.WalkDir(temporary, fn); err != nil || !give {
		return err
	}
	return os.Lchown(filepath.Join(dir, lockFile), int(owner.Uid), int(owner.Gid))
}

// syncPath makes sure that a file or the names in a directory are on the disk.
func syncPath(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return file.Sync()
}
