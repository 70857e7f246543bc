// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
)

const (
	// partBytes is how much is uploaded with one request, of which one is on its way at a time.
	partBytes = 16 << 20
	// cleanTimeout bounds the removal of the parts of an upload that failed.
	cleanTimeout = 30 * time.Second
)

// Bucket is a place in a bucket, and how it is reached.
type Bucket struct {
	Place

	client   *minio.Client
	endpoint string
	// from says where the credentials come from.
	from string
}

// Upload stores a file that was verified under a name. If it fails, there is no object, and parts that were uploaded are removed.
func (b *Bucket) Upload(ctx context.Context, path, name string) error {
	_, err := b.client.FPutObject(ctx, b.Bucket, b.object(name), path, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: partBytes, NumThreads: 1, SendContentMd5: true,
	})
	if err == nil {
		return nil
	}
	// The library does so with the context of the upload, which may have ended.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	_ = b.client.RemoveIncompleteUpload(clean, b.Bucket, b.object(name))
	return fmt.Errorf("uploading to %s: %w", b.named(name), b.explain(err, "s3:PutObject"))
}

// List returns the backups, the newest first. Other objects are left alone.
func (b *Bucket) List(ctx context.Context) ([]backup.Kept, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing if it is left early
	var kept []backup.Kept
	for object := range b.client.ListObjects(ctx, b.Bucket, minio.ListObjectsOptions{Prefix: b.Prefix}) {
		if object.Err != nil {
			return nil, fmt.Errorf("listing %s: %w", b.named(""), b.explain(object.Err, "s3:ListBucket"))
		}
		if k, ok := backup.ParseName(strings.TrimPrefix(object.Key, b.Prefix)); ok {
			kept = append(kept, k)
		}
	}
	slices.SortFunc(kept, backup.Newest)
	return kept, nil
}

// Newest returns the name of the newest backup, unless the place names one.
func (b *Bucket) Newest(ctx context.Context) (string, error) {
	if b.Name != "" {
		return b.Name, nil
	}
	kept, err := b.List(ctx)
	if err != nil {
		return "", err
	}
	if len(kept) == 0 {
		return "", fmt.Errorf("%s %w", b.Place, errEmpty)
	}
	return kept[0].Name, nil
}

// Download copies a backup. The caller verifies it.
func (b *Bucket) Download(ctx context.Context, name string, to io.Writer) error {
	fail := func(err error) error {
		return fmt.Errorf("downloading %s: %w", b.named(name), b.explain(err, "s3:GetObject"))
	}
	object, err := b.client.GetObject(ctx, b.Bucket, b.object(name), minio.GetObjectOptions{})
	if err != nil {
		return fail(err)
	}
	defer object.Close()
	written := &counter{to: to}
	if _, err := io.Copy(written, object); err != nil {
		if written.err != nil {
			return fmt.Errorf("writing what is downloaded: %w", written.err)
		}
		if written.bytes > 0 {
			err = fmt.Errorf("the connection ended after %d bytes: %w", written.bytes, err)
		}
		return fail(err)
	}
	return nil
}

// counter counts what is written, and keeps the error of the writer.
type counter struct {
	to    io.Writer
	bytes int64
	err   error
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.bytes, c.err = c.bytes+int64(n), err
	return n, err
}

// Prune deletes the oldest backups beyond those that are kept, and never the one that is named; 0 keeps all.
func (b *Bucket) Prune(ctx context.Context, newest string, keep int) error {
	if keep == 0 {
		return nil
	}
	kept, err := b.List(ctx)
	if err != nil {
		return fmt.Errorf("looking for old backups: %w", err)
	}
	kept = slices.DeleteFunc(kept, func(k backup.Kept) bool { return k.Name == newest })
	var errs []error
	for _, old := range kept[min(len(kept), keep-1):] {
		if err := b.client.RemoveObject(ctx, b.Bucket, b.object(old.Name), minio.RemoveObjectOptions{}); err != nil {
			errs = append(errs, fmt.Errorf("deleting the old backup %s: %w", b.named(old.Name), b.explain(err, "s3:DeleteObject")))
		}
	}
	return errors.Join(errs...)
}

func (b *Bucket) named(name string) string { return scheme + b.Bucket + "/" + b.object(name) }
