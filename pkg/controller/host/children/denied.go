// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// errTooMany is the error of a request that is not made because of denials that are not remembered.
var errTooMany = errors.New("too many requests about other children were denied")

// Verbs of requests.
const (
	verbCreate = "create"
	verbPatch  = "patch"
	verbDelete = "delete"
	// verbStatus is for the status of the owner itself.
	verbStatus = "update status"
)

// Request names a request about an owner or one of its children, as far as Denials distinguish requests.
type Request struct {
	// Verb and Resource are what is asked for: requests of another verb or resource may be accepted.
	Verb, Resource string
	// Kind is the kind of the child.
	Kind schema.GroupKind
	// Name is the name of the child, and UID its UID; for creations the UID of its controller.
	Name string
	UID  types.UID
	// Change distinguishes kinds of changes of one child, such as changes of its status.
	Change string
	// Template is what children have in common that are all invalid if one is; HasTemplate is whether that is known.
	Template    string
	HasTemplate bool
}

// requestKey is what a denial is remembered by.
type requestKey struct {
	verb, resource string
	reach          reach
	// name is the name of the child or of the template.
	name, change string
	uid          types.UID
}

// key returns what denials of that reach are remembered by.
func (r Request) key(of reach) requestKey {
	key := requestKey{verb: r.Verb, resource: r.Resource, reach: of}
	switch of {
	case thisChild:
		key.name, key.change, key.uid = r.Name, r.Change, r.UID
	case sameTemplate:
		key.name = r.Template
	}
	return key
}

// keys returns all keys by which a request may be remembered, from the one with the shortest reach on.
func (r Request) keys() []requestKey {
	if r.HasTemplate {
		return []requestKey{r.key(thisChild), r.key(sameTemplate), r.key(allChildren)}
	}
	return []requestKey{r.key(thisChild), r.key(allChildren)}
}

// reach returns the reach of the denial of a request. One without a template has none in common with others.
func (r Request) reach(err error) reach {
	if of := reachOf(r.Kind, r.Name, err); of != sameTemplate || r.HasTemplate {
		return of
	}
	return thisChild
}

// DeniedError is the answer of an API server that has decided against a request, now or earlier. The text is the same.
type DeniedError struct {
	err   error
	reach reach
	// next is when the request may be made again.
	next time.Time
	// asked is whether the request was made now.
	asked bool
}

// Error implements error.
func (e *DeniedError) Error() string { return e.err.Error() }

// Unwrap returns the answer of the API server.
func (e *DeniedError) Unwrap() error { return e.err }

// Decided returns whether an error is a decision of an API server against a request. A server that fails, that asks for fewer requests, or
// that shows another state than was known has decided nothing, nor has one whose namespace is about to be gone. A full store is a decision:
// it refuses until a user makes space.
func Decided(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || IsUndone(err) || TerminatingNamespace(err) {
		return false
	}
	status := answer.Status()
	switch status.Code {
	case http.StatusConflict, http.StatusNotFound, http.StatusGone, http.StatusTooManyRequests, http.StatusUnauthorized,
		http.StatusRequestTimeout:
		return false
	}
	denied := status.Code >= http.StatusBadRequest && status.Code < http.StatusInternalServerError
	return denied || status.Code == http.StatusInsufficientStorage || strings.Contains(status.Message, "admission webhook ") // with any code
}

// NotAsked returns whether an error says why no request was made: another party undoes it each time, or it was denied earlier.
func NotAsked(err error) bool {
	var denied *DeniedError
	return IsUndone(err) || errors.As(err, &denied) && !denied.asked
}

// maxAnswer is the length of the answers that are remembered, in bytes.
const maxAnswer = 4096

// shortened returns an error whose message is not longer than what is remembered.
func shortened(err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || len(status.ErrStatus.Message) <= maxAnswer {
		return err
	}
	short := &apierrors.StatusError{ErrStatus: *status.ErrStatus.DeepCopy()}
	short.ErrStatus.Message = text.TruncateWithEllipsis(short.ErrStatus.Message, maxAnswer)
	return short
}

// AskAgain returns when the first of the requests may be made again whose denials are in an error, or that another party undoes; zero if
// there are none. only is whether the error has nothing else, so that no backoff is due.
func AskAgain(err error) (next time.Time, only bool) {
	switch e := err.(type) { //nolint:errorlint // looks at each part itself
	case nil:
		return time.Time{}, true
	case *DeniedError:
		return e.next, true
	case *UndoneError:
		return e.Next, true
	case *joinedError:
		return e.next, e.only
	case interface{ Unwrap() []error }:
		return askAgain(e.Unwrap())
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return AskAgain(inner)
		}
	}
	return time.Time{}, false
}

func askAgain(errs []error) (next time.Time, only bool) {
	only = true
	for _, err := range errs {
		at, alone := AskAgain(err)
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
		only = only && alone
	}
	return next, only
}

// joinedError is the first of many errors, and knows of all what AskAgain returns.
type joinedError struct {
	error
	next time.Time
	only bool
}

// Unwrap returns the errors that it shows.
func (e *joinedError) Unwrap() error { return e.error }

// Due returns when an object is synced again whose sync has returned an error: also when the first request may be made that was denied, and
// soon if an API did not know what a cache shows.
func (h *Host) Due(owner cache.ObjectName, due queue.Due, err error) queue.Due {
	if DenialsOf(h).takeAbsent(owner) {
		due.Deadline = plan.Sooner(due.Deadline, lookAgain)
	}
	next, only := AskAgain(err)
	if next.IsZero() {
		return due
	}
	due.Denied = only
	due.Acts = plan.Sooner(due.Acts, max(next.Sub(h.Clock.Now()), time.Millisecond))
	return due
}
