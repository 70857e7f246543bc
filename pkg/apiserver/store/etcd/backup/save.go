// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// syncBytes is how much is written before it is put on the disk, so that neither memory nor one long flush stands in the way of
	// the log of an etcd on the same disk.
	syncBytes = 16 << 20
	// answerTimeout bounds a question to a member. A snapshot takes as long as it takes.
	answerTimeout = 10 * time.Second
	// logBytes is more than the log of an etcd grows by while a backup is made. An etcd that cannot write its log ends.
	logBytes = 256 << 20
)

// Source is an etcd with the store of a server.
type Source struct {
	// Client is how it is reached. A snapshot comes from one member, and the endpoints are tried in turn.
	Client clientv3.Config
	// Prefix is what the names of all keys of the server begin with.
	Prefix string
	// DataDir is the directory of an embedded etcd, and empty for others. A backup on its file system leaves space for it.
	DataDir string
}

// Witness reads the key of the witness and the revision of the store. The key is nil if there is none.
func (s Source) Witness(ctx context.Context) (*witness.Found, int64, error) {
	client, err := s.connect(ctx, s.Client.Endpoints...)
	if err != nil {
		return nil, 0, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	response, err := client.Get(ctx, WitnessKey(s.Prefix))
	if err != nil {
		return nil, 0, fmt.Errorf("reading from etcd: %w", err)
	}
	found, err := decode(response)
	return found, response.Header.Revision, err
}

func decode(response *clientv3.GetResponse) (*witness.Found, error) {
	if len(response.Kvs) == 0 {
		return nil, nil
	}
	key, err := witness.DecodeKey(response.Kvs[0].Value)
	if err != nil {
		return nil, err
	}
	return &witness.Found{Key: key, ModRevision: response.Kvs[0].ModRevision}, nil
}

func (s Source) connect(ctx context.Context, endpoints ...string) (*clientv3.Client, error) {
	config := s.Client
	config.Endpoints, config.Context, config.Logger = endpoints, ctx, zap.NewNop()
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return client, nil
}

// write streams a snapshot into an empty file and checks it. What the store had when this began is in it.
func (s Source) write(ctx context.Context, file *os.File) (*File, error) {
	found, revision, err := s.Witness(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, endpoint := range s.Client.Endpoints {
		saved, err := s.writeFrom(ctx, endpoint, file)
		if err == nil {
			err = compare(saved, s.Prefix, found, revision)
		}
		if err == nil {
			return saved, saved.Close()
		}
		errs = append(errs, fmt.Errorf("%s: %w", endpoint, err))
		if errors.Is(err, syscall.ENOSPC) || ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// compare makes sure that a snapshot belongs to the same store, and that the member it comes from does not lag behind.
func compare(saved *File, prefix string, found *witness.Found, revision int64) error {
	if saved.Revision < revision {
		return errors.Join(lags(saved.Revision, revision), saved.Close())
	}
	got, err := saved.Witness(prefix)
	if err == nil && found != nil && (got == nil || got.UUID != found.UUID) {
		err = errOtherStore
	}
	if err != nil {
		return errors.Join(err, saved.Close())
	}
	return nil
}

var errOtherStore = errors.New("the snapshot does not have the key of the witness that is in the store")

func lags(has, least int64) error {
	return fmt.Errorf("this member lags behind: it has revision %d, but the store had %d already", has, least)
}

func (s Source) writeFrom(ctx context.Context, endpoint string, file *os.File) (*File, error) {
	client, err := s.connect(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := s.checkSpace(ctx, client, endpoint, file); err != nil {
		return nil, err
	}
	if err := errors.Join(file.Truncate(0), rewind(file)); err != nil {
		return nil, err
	}
	response, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for a snapshot: %w", err)
	}
	err = stream(file, response.Snapshot)
	if err = errors.Join(err, response.Snapshot.Close()); err != nil {
		return nil, fmt.Errorf("writing a snapshot: %w", err)
	}
	return Open(file.Name())
}

func rewind(file *os.File) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

// checkSpace refuses to begin what would fill the disk.
func (s Source) checkSpace(ctx context.Context, client *clientv3.Client, endpoint string, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	status, err := client.Status(ctx, endpoint)
	if err != nil {
		return fmt.Errorf("asking for the size of the database: %w", err)
	}
	needed := status.DbSize
	if s.shares(file) {
		needed += status.DbSize + logBytes // a defragmentation copies the database
	}
	var stat syscall.Statfs_t
	if err := syscall.Fstatfs(int(file.Fd()), &stat); err != nil {
		return fmt.Errorf("looking at the file system of %s: %w", file.Name(), err)
	}
	if free := int64(stat.Bavail) * stat.Bsize; free < needed {
		return fmt.Errorf("%w: %d MiB are free where %s is, but %d MiB are needed", syscall.ENOSPC, free>>20, file.Name(), needed>>20+1)
	}
	return nil
}

// shares returns whether a file is on the file system of the embedded etcd.
func (s Source) shares(file *os.File) bool {
	var data, backup syscall.Stat_t
	return s.DataDir != "" && syscall.Stat(s.DataDir, &data) == nil && syscall.Fstat(int(file.Fd()), &backup) == nil && data.Dev == backup.Dev
}

// stream copies in pieces, each of which is on the disk before the next is read.
func stream(to *os.File, from io.Reader) error {
	for {
		n, err := io.CopyN(to, from, syncBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n > 0 {
			if err := to.Sync(); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}
