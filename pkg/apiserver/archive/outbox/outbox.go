// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// Name is the name of the outbox below the prefix of the server in etcd, beside the API groups.
const Name = "archive-outbox"

// The bounds unless the configuration has others.
const (
	DefaultMaxEntries = 100_000
	DefaultMaxBytes   = 64 << 20
)

// ErrFull is returned for an entry that would exceed the bounds.
var ErrFull = errors.New("the outbox of the archive is full")

// Config is what an outbox needs.
type Config struct {
	// Transport is how etcd is reached, and Prefix is what the names of all keys of the server begin with.
	Transport storagebackend.TransportConfig
	Prefix    string
	// MaxEntries and MaxBytes bound what is kept. 0 means the default.
	MaxEntries, MaxBytes int64
	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
}

// Outbox keeps entries in etcd. Several servers use the same one.
type Outbox struct {
	Config
	client *clientv3.Client
	// prefix is what the names of the keys of entries begin with.
	prefix string
	// recounting is held while the entries are counted.
	recounting *semaphore.Weighted

	mu           sync.Mutex
	transformers map[schema.GroupResource]value.Transformer
	usage        Usage
	// counted is when the entries were last counted, or that was tried.
	counted time.Time
}

// Open returns the outbox of a server. Nothing is counted before Recount.
func Open(config Config) (*Outbox, error) {
	if config.MaxEntries == 0 {
		config.MaxEntries = DefaultMaxEntries
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	client, err := connect(config.Transport)
	if err != nil {
		return nil, err
	}
	registerMetrics()
	return &Outbox{
		Config: config, client: client, prefix: path.Join("/", config.Prefix, Name) + "/", recounting: semaphore.NewWeighted(1),
		transformers: map[schema.GroupResource]value.Transformer{},
	}, nil
}

// Close closes the connection to etcd.
func (o *Outbox) Close() error { return o.client.Close() }

// Encrypt makes the outbox encrypt the runs of a resource with a transformer, as the objects of the resource are. nil encrypts nothing. It
// is called before the first entry of the resource is written or read.
func (o *Outbox) Encrypt(resource schema.GroupResource, transformer value.Transformer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.transformers[resource] = transformer
}

func (o *Outbox) transformer(resource schema.GroupResource) value.Transformer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.transformers[resource]
}

// Put writes an entry, which replaces an earlier one of the same run. It returns ErrFull if there is no room.
func (o *Outbox) Put(ctx context.Context, entry Entry) error {
	key := o.prefix + archive.KeyOf(entry.Run).String()
	data, err := encode(ctx, key, entry, o.transformer(entry.Resource))
	if err != nil {
		return err
	}
	size := sizeOf(key, data)
	if err := o.reserve(ctx, size); err != nil {
		return err
	}
	response, err := o.client.Put(ctx, key, string(data), clientv3.WithPrevKV())
	if err != nil {
		o.release(1, size)
		return fmt.Errorf("writing %s to etcd: %w", key, err)
	}
	if before := response.PrevKv; before != nil {
		o.release(1, sizeOf(key, before.Value))
	}
	return nil
}

// Remove deletes an entry if it is still the one that was read. It returns whether it was.
func (o *Outbox) Remove(ctx context.Context, stored Stored) (bool, error) {
	response, err := o.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(stored.Key), "=", stored.Revision)).
		Then(clientv3.OpDelete(stored.Key)).Commit()
	if err != nil {
		return false, fmt.Errorf("removing %s from etcd: %w", stored.Key, err)
	}
	if response.Succeeded {
		o.release(1, sizeOf(stored.Key, stored.value))
	}
	return response.Succeeded, nil
}

func sizeOf(key string, value []byte) int64 { return int64(len(key) + len(value)) }
