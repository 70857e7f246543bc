// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"fmt"
)

// Verdict is what becomes of an object.
type Verdict string

// Verdicts.
const (
	// Created: the store did not have it.
	Created Verdict = "created"
	// Updated: the source has changed since it was imported.
	Updated Verdict = "updated"
	// Unchanged: the store has the same.
	Unchanged Verdict = "unchanged"
	// Pruned: it was imported, and the source does not have it any more.
	Pruned Verdict = "pruned"
)

// Errors about an object of which the store has another form. The store is right each time: nothing is written.
var (
	errDeleted  = &otherError{"it was imported before, and has been deleted from the store since"}
	errChanged  = &otherError{"the store has the same object in another form, which jobset-apiserver has written"}
	errWritten  = &otherError{"jobset-apiserver has written it since it was imported, or it was not imported; delete it with kubectl"}
	errGone     = errors.New("it was imported, and the source does not have it any more: add --prune to delete it from the store")
	errNameless = errors.New("it was imported, and may be the object without a name that is not accepted: correct that first")
)

// otherError says that the store has something else under the name of an object.
type otherError struct{ text string }

// Error implements error.
func (e *otherError) Error() string { return e.text }

// decide compares an object of the source with what is stored under its name.
func (k *Kinds) decide(o *object, e *entry) (Verdict, error) {
	if e.revision == 0 {
		if e.mark != nil && e.mark.UID == o.uid {
			return "", errDeleted
		}
		return Created, nil
	}
	uid, err := k.uidOf(e.data)
	if err != nil {
		return "", fmt.Errorf("decoding what is stored: %w", err)
	}
	if uid != o.uid {
		return "", &otherError{fmt.Sprintf("the store has another object of this name: its UID must be %s, not %s; delete one of the two",
			o.uid, uid)}
	}
	same, err := k.same(o.data, e.data)
	switch {
	case err != nil:
		return "", fmt.Errorf("decoding what is stored: %w", err)
	case same:
		return Unchanged, nil
	case !e.untouched():
		return "", errChanged
	case o.version < e.mark.ResourceVersion:
		return "", &otherError{fmt.Sprintf("the source must not be older than what was imported: its resource version must be at least %d, "+
			"not %d", e.mark.ResourceVersion, o.version)}
	}
	return Updated, nil
}

// force decides that an object of the source is right where the store would be.
func force(before *entry, verdict Verdict, err error) (Verdict, error) {
	var other *otherError
	switch {
	case !errors.As(err, &other):
		return verdict, err
	case before.revision == 0:
		return Created, nil
	}
	return Updated, nil
}
