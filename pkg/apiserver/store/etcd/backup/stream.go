// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Streamed is what was written to a stream.
type Streamed struct {
	Bytes int64
	// Revision is the revision that the member had before the snapshot; the snapshot has it or a later one.
	Revision int64
}

// Stream writes a snapshot to a stream and checks its hash. What cannot be checked in a stream, that the member neither lags behind nor
// has another store, is asked before. Once anything is written, an error means that the stream is not a backup.
func Stream(ctx context.Context, source Source, to io.Writer) (*Streamed, error) {
	found, revision, err := source.Witness(ctx)
	if err != nil {
		return nil, err
	}
	uuid := ""
	if found != nil {
		uuid = found.UUID
	}
	var errs []error
	for _, endpoint := range source.Client.Endpoints {
		out := &hashing{to: to, sum: sha256.New()}
		member, err := source.streamFrom(ctx, endpoint, uuid, revision, out)
		if err == nil {
			return &Streamed{Bytes: out.bytes, Revision: member}, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", endpoint, err))
		if out.bytes > 0 || ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func (s Source) streamFrom(ctx context.Context, endpoint, uuid string, least int64, out *hashing) (int64, error) {
	client, err := s.connect(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	revision, err := s.checkMember(ctx, client, uuid, least)
	if err != nil {
		return 0, err
	}
	response, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return 0, fmt.Errorf("asking for a snapshot: %w", err)
	}
	_, err = io.Copy(out, response.Snapshot)
	if err = errors.Join(err, response.Snapshot.Close()); err != nil {
		return 0, fmt.Errorf("writing a snapshot: %w", err)
	}
	return revision, out.check()
}

// checkMember makes sure that a member has all of the store, and returns the revision that it has itself.
func (s Source) checkMember(ctx context.Context, client *clientv3.Client, uuid string, least int64) (int64, error) {
	response, err := func() (*clientv3.GetResponse, error) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		return client.Get(ctx, WitnessKey(s.Prefix), clientv3.WithSerializable())
	}()
	if err != nil {
		return 0, fmt.Errorf("reading from etcd: %w", err)
	}
	if response.Header.Revision < least {
		return 0, lags(response.Header.Revision, least)
	}
	found, err := decode(response)
	if err == nil && uuid != "" && (found == nil || found.UUID != uuid) {
		err = errOtherStore
	}
	return response.Header.Revision, err
}

// hashing computes the hash of all that is written but the hash at its end.
type hashing struct {
	to    io.Writer
	sum   hash.Hash
	last  []byte
	bytes int64
}

func (h *hashing) Write(p []byte) (int, error) {
	n, err := h.to.Write(p)
	h.bytes += int64(n)
	h.last = append(h.last, p[:n]...)
	if more := len(h.last) - sha256.Size; more > 0 {
		h.sum.Write(h.last[:more])
		h.last = append(h.last[:0], h.last[more:]...)
	}
	return n, err
}

func (h *hashing) check() error {
	if h.bytes%blockBytes != sha256.Size || h.bytes < blockBytes {
		return errors.New("the snapshot does not end with a hash: it was cut off")
	}
	if got := h.sum.Sum(nil); !bytes.Equal(got, h.last) {
		return fmt.Errorf("the snapshot is damaged: its content has the hash %x, but it ends with %x", got, h.last)
	}
	return nil
}

// Spool copies a backup into a new file of a directory, because only a file can be verified, and returns its path and what removes it.
func Spool(dir string, from func(io.Writer) error) (path string, remove func() error, err error) {
	file, err := os.CreateTemp(dir, "jobset-apiserver-*."+incompleteName)
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.Remove(file.Name()) }
	if err := errors.Join(from(file), file.Close()); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return file.Name(), remove, nil
}
