// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup/bucket"
)

// fetched is a backup in a file.
type fetched struct {
	path string
	// name is how messages call it.
	name string
	// remove removes the file if it is temporary.
	remove func() error
}

// open verifies the backup.
func (f *fetched) open() (*backup.File, error) {
	file, err := backup.Open(f.path)
	if err != nil && f.path != f.name {
		// The temporary name says nothing.
		err = errors.New(strings.ReplaceAll(err.Error(), f.path, f.name))
	}
	if file != nil {
		file.Path = f.name
	}
	return file, err
}

// fetch copies a backup from the standard input or from a bucket into a temporary file of a directory, because only a file can be
// verified. Any other argument is the name of a file.
func fetch(ctx context.Context, argument string, s3 bucket.Options, in io.Reader, dir string) (*fetched, error) {
	if bucket.IsPlace(argument) {
		return download(ctx, argument, s3, dir)
	}
	if err := unusedBucketFlags(s3); err != nil {
		return nil, err
	}
	if strings.HasSuffix(argument, "/") {
		return newest(argument)
	}
	if argument != standard {
		return &fetched{argument, argument, func() error { return nil }}, nil
	}
	path, remove, err := backup.Spool(dir, func(to io.Writer) error {
		_, err := io.Copy(to, in)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("copying the standard input: %w", err)
	}
	return &fetched{path, "the standard input", remove}, nil
}

// newest returns the newest backup in a directory.
func newest(dir string) (*fetched, error) {
	kept, err := backup.Directory{Path: dir}.List()
	if err != nil {
		return nil, err
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("%s has no backup", dir)
	}
	path := filepath.Join(dir, kept[0].Name)
	return &fetched{path, path, func() error { return nil }}, nil
}

func download(ctx context.Context, address string, s3 bucket.Options, dir string) (*fetched, error) {
	place, err := bucket.ParsePlace(address)
	if err != nil {
		return nil, err
	}
	from, err := s3.Open(ctx, place)
	if err != nil {
		return nil, err
	}
	name, err := from.Newest(ctx)
	if err != nil {
		return nil, err
	}
	path, remove, err := backup.Spool(dir, func(to io.Writer) error { return from.Download(ctx, name, to) })
	if err != nil {
		return nil, err
	}
	place.Name = name
	return &fetched{path, place.String(), remove}, nil
}
