// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive is what all parts of the archive of runs share: how a run is identified, how kinds describe their runs, and what a store
// of runs does. Stores are in package archivesql, what records runs is in pkg/apiserver/archive, and the API is in pkg/registry/archive.
package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
)

// Describe returns the run of an object as of now: its current or last execution. The state is empty for a run that has not ended; then the
// end time is now. It returns nil for an object that has never begun to run. It fills everything but the details and the creation time,
// sets Name and UID of the run, and does not change the object.
type Describe func(object runtime.Object, now time.Time) *archive.Run

// Key identifies a run.
type Key struct {
	// Object is the UID of the object that ran.
	Object types.UID
	// Execution is the number of its execution. A later execution has a higher number.
	Execution int32
}

// KeyOf returns the key of a run.
func KeyOf(run *archive.Run) Key {
	return Key{Object: run.Object.UID, Execution: run.Object.Execution}
}

// String returns the key as text. It is unique, and valid as a part of an etcd key.
func (k Key) String() string { return fmt.Sprintf("%s.%d", k.Object, k.Execution) }

// space is the namespace of the UIDs of runs.
var space = uuid.MustParse("6f1c3b6e-6f0b-4d6e-9a55-0a0e8a0f7d11")

// UID returns the UID of the run, which follows from the key.
func (k Key) UID() types.UID {
	return types.UID(uuid.NewSHA1(space, []byte(k.String())).String())
}

const (
	// suffixLength is the number of hexadecimal digits at the end of the name of a run: 48 bits.
	suffixLength = 12
	// maxPrefix is how much of the name of an object the name of its run has.
	maxPrefix = 200
)

// Name returns the name of the run of an object. It begins with the name of the object.
func (k Key) Name(object string) string {
	if len(object) > maxPrefix {
		object = strings.TrimRight(object[:maxPrefix], "-.")
	}
	sum := sha256.Sum256([]byte(k.String()))
	return fmt.Sprintf("%s-%x", object, sum[:suffixLength/2])
}

// ErrNotFound is returned for a run that a store does not have.
var ErrNotFound = errors.New("run not found")

// ErrGone is returned for a query that continues where this is no longer possible: the token is damaged, or belongs to another query.
var ErrGone = errors.New("the continue token is not valid for this query")

// Store keeps runs. All methods may be called concurrently, by several servers.
type Store interface {
	// Put stores runs, all or none. A run that is stored already is replaced, unless the stored one has a later end. A run that a client has
	// deleted stays deleted, and a run that is older than what retention has removed is left out; neither is an error.
	Put(ctx context.Context, runs []archive.Run) error
	// Missing returns which of the runs are neither stored nor left out by Put for good. Each key comes with the end of its run.
	Missing(ctx context.Context, runs []Ended) ([]Key, error)
	// Get returns a run with its details, or ErrNotFound.
	Get(ctx context.Context, namespace, name string) (*archive.Run, error)
	// List returns runs without their details, those that ended last first. It returns ErrGone for a token that it cannot use.
	List(ctx context.Context, query Query) (*Page, error)
	// Delete deletes the run with the name and the UID, and returns it without details. It returns ErrNotFound if there is none with both.
	Delete(ctx context.Context, namespace, name string, uid types.UID) (*archive.Run, error)
	// Prune removes at most batch runs that ended before the time, oldest first. If the store is larger than maxBytes, it then removes the
	// oldest runs of what is left of the batch. 0 bytes is no limit. It returns how many it has removed; fewer than batch means that nothing
	// is left to remove.
	Prune(ctx context.Context, before time.Time, maxBytes int64, batch int) (int, error)
	// Usage returns how much is stored.
	Usage(ctx context.Context) (Usage, error)
	// Close releases what the store holds. No method may be called afterwards.
	Close() error
}

// Ended is a run by its key, and when it ended.
type Ended struct {
	Key
	End time.Time
}

// Query selects runs.
type Query struct {
	// Namespace is the namespace of the runs; empty for all.
	Namespace string
	// Labels are what the labels of the runs must match; nil for everything.
	Labels labels.Selector
	// Fields are what the runs must match. All must hold.
	Fields []Requirement
	// Limit is the highest number of runs on the page, from 1 to MaxLimit. 0 means MaxLimit.
	Limit int
	// Continue is the token of the page before; empty for the first page.
	Continue string
}

// MaxLimit is the highest number of runs that one query returns. A client that asks for more, or for all, gets the rest with the continue
// token.
const MaxLimit = 500

// Field is a field by which runs are selected.
type Field string

// The fields by which runs are selected. FieldCause selects runs one of whose failures has the reason, and FieldNode runs one of whose
// failures was on the node.
const (
	FieldName   Field = "metadata.name"
	FieldState  Field = "state"
	FieldUser   Field = "user"
	FieldQueue  Field = "queue"
	FieldCause  Field = "cause"
	FieldNode   Field = "node"
	FieldKind   Field = "kind"
	FieldObject Field = "object" // the name of the object that ran
)

// The fields whose values are times in RFC 3339. They select runs that began or ended at the time or after it, or before it.
const (
	FieldBeganAfter  Field = "beganAfter"
	FieldBeganBefore Field = "beganBefore"
	FieldEndedAfter  Field = "endedAfter"
	FieldEndedBefore Field = "endedBefore"
)

// Requirement is what a field must be.
type Requirement struct {
	Field Field
	// Value is the value of the field. It is a time in RFC 3339 for the fields of times.
	Value string
	// Not means that the field must have another value. It is not allowed for fields of times.
	Not bool
}

// Page is one page of an answer.
type Page struct {
	Runs []archive.Run
	// Continue is the token with which the next page begins; empty on the last one.
	Continue string
}

// Usage is how much a store has.
type Usage struct {
	// Runs is the number of runs.
	Runs int64
	// Bytes is the size of the database in bytes.
	Bytes int64
	// Oldest is when the oldest run ended; zero if there is none.
	Oldest time.Time
}
