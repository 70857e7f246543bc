// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive keeps the runs of objects that have ended or are removed. It puts the parts together: the database, the outbox, and the
// recorder in front of the stores of objects.
package archive

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/database"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/outbox"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/recording"
	archivestore "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive/redact"
	archivesql "github.com/jobset-apiserver/jobset-apiserver/pkg/archive/sql"
)

// Config is what an archive needs.
type Config struct {
	// Database is where runs are kept, and Limits say which.
	Database archivesql.Config
	Limits   database.Limits
	// Redaction is what is kept of a run. The archive adds the key.
	Redaction redact.Options
	// Transport is how etcd is reached, and Prefix is what the names of all keys of the server begin with.
	Transport storagebackend.TransportConfig
	Prefix    string
	// Describe describes the runs of each resource, and New returns an empty object and an empty list of one.
	Describe map[schema.GroupResource]archivestore.Describe
	New      func(schema.GroupResource) (object, list runtime.Object)
	// Encoder encodes an object as JSON in the version in which runs show it.
	Encoder runtime.Encoder
	// Serving returns whether the server serves its store. Until then nothing is read and nothing is recorded.
	Serving func() bool
}

// Archive keeps runs. A nil one keeps none.
type Archive struct {
	database *database.Database
	outbox   *outbox.Outbox
	recorder *recording.Recorder
	serving  func() bool
	// options and redactor are what is kept of a run. Until the shared key of hashes is known, the redactor has a key of its own.
	options  redact.Options
	redactor atomic.Pointer[redact.Redactor]
}

// New returns an archive. It waits for nothing: the database is opened while the server runs.
func New(config Config) (*Archive, error) {
	a := &Archive{options: config.Redaction, serving: config.Serving}
	own := make([]byte, sha256.Size)
	_, _ = rand.Read(own) // never fails
	if err := a.useKey(own); err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (archivestore.Store, error) { return archivesql.Open(ctx, config.Database) }
	a.database = database.New(open, config.Limits, clock.RealClock{})
	var err error
	if a.outbox, err = outbox.Open(outbox.Config{Transport: config.Transport, Prefix: config.Prefix}); err != nil {
		return nil, fmt.Errorf("opening the outbox of the archive: %w", err)
	}
	a.recorder = recording.New(recording.Config{
		Store: a.database, Outbox: a.outbox, Describe: config.Describe, New: config.New, Encoder: config.Encoder, Redact: a.redact,
		Serving: config.Serving,
	})
	a.database.Register()
	return a, nil
}

// Store returns the runs; nil if none are kept.
func (a *Archive) Store() archivestore.Store {
	if a == nil {
		return nil
	}
	return a.database
}

// Wrap puts the recorder in front of the store of a resource.
func (a *Archive) Wrap(store storage.Interface, config *storagebackend.ConfigForResource) (storage.Interface, error) {
	if a == nil {
		return store, nil
	}
	return a.recorder.Wrap(store, config)
}

// useKey makes hashes with a key from now on.
func (a *Archive) useKey(key []byte) error {
	options := a.options
	options.Key = key
	redactor, err := redact.New(options)
	if err != nil {
		return err
	}
	a.redactor.Store(redactor)
	return nil
}

// redact removes what must not be kept from a run.
func (a *Archive) redact(run *api.Run, spec, status map[string]any) {
	redactor := a.redactor.Load()
	redactor.Details(spec, status)
	redactor.Metadata(run.Labels, run.Annotations)
}

const (
	// looks is the time between two looks whether the store is served, and between two tries to read the key of hashes.
	looks = time.Second
	// timeout bounds one try.
	timeout = 5 * time.Second
)

// Record records runs once the store is served, until the returned function is called. The server calls it after it has answered all
// requests, because their runs are recorded, too.
func (a *Archive) Record(ctx context.Context) (stop func()) {
	if a == nil {
		return func() {}
	}
	logger := klog.FromContext(ctx)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { a.database.Run(ctx) })
	running.Go(func() { a.recorder.Run(ctx) })
	running.Go(func() { a.shareKey(ctx) })
	return func() {
		cancel()
		running.Wait()
		if err := errors.Join(a.outbox.Close(), a.database.Close()); err != nil {
			logger.Error(err, "Cannot close the archive")
		}
	}
}

// shareKey makes all servers hash with the same key, once the store is served.
func (a *Archive) shareKey(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, looks, true, func(ctx context.Context) (bool, error) {
		if !a.serving() {
			return false, nil
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		key, err := a.outbox.HashKey(ctx)
		if err == nil {
			err = a.useKey(key)
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot read the key of hashes; hashes of this server differ from those of others")
		}
		return err == nil, nil
	})
}
