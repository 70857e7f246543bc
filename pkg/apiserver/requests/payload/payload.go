// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package payload bounds what requests make the server decode. A few bytes can stand for a large object: two of JSON, one
// of CBOR, an alias of YAML. Therefore each body is scanned, in linear time and without building anything, before it is
// decoded into objects: a handler does so for bodies, and a decoder for the results of patches.
package payload

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
)

const (
	// MaxBytes bounds bodies. It is the largest write that etcd takes by default.
	MaxBytes = 3 << 19
	// MaxEntries bounds each list and each map.
	MaxEntries = 20_000
	// MaxObjects bounds the objects and lists that are items of lists, of all lists together.
	MaxObjects = 60_000
	// MaxMergedItems bounds the objects in each list of a strategic merge patch or a server-side apply. Validation has the same limit.
	MaxMergedItems = validation.MaxItems
	// MaxDepth bounds how deep objects and lists are nested.
	MaxDepth = 100
	// maxMarks bounds the characters of YAML that may begin something, because YAML cannot be counted without parsing it.
	maxMarks = 200_000
)

func tooMany(format string, args ...any) error {
	return errors.NewRequestEntityTooLargeError("the body must have no more than " + fmt.Sprintf(format, args...))
}

// counter follows a walk through a document.
type counter struct {
	// merged says that the document is merged with what is stored, item by item.
	merged  bool
	objects int
	stack   []frame
}

// frame is a list or a map that the walk is in.
type frame struct {
	list    bool
	entries int
	objects int
}

// open enters a list or a map.
func (c *counter) open(list bool) error {
	if n := len(c.stack); n > 0 && c.stack[n-1].list {
		if err := c.object(); err != nil {
			return err
		}
		c.stack[n-1].objects++
		if c.merged && c.stack[n-1].objects > MaxMergedItems {
			return tooMany("%d objects in a list that is merged with what is stored", MaxMergedItems)
		}
	}
	if len(c.stack) >= MaxDepth {
		return tooMany("%d levels of objects and lists", MaxDepth)
	}
	c.stack = append(c.stack, frame{list: list})
	return nil
}

// object counts an item of a list that is more than a scalar.
func (c *counter) object() error {
	c.objects++
	if c.objects > MaxObjects {
		return tooMany("%d objects in lists", MaxObjects)
	}
	return nil
}

// entry counts an entry of the list or map that the walk is in.
func (c *counter) entry() error {
	n := len(c.stack)
	if n == 0 {
		return nil
	}
	c.stack[n-1].entries++
	return withinEntries(c.stack[n-1].entries)
}

func (c *counter) close() {
	if n := len(c.stack); n > 0 {
		c.stack = c.stack[:n-1]
	}
}

func withinEntries(n int) error {
	if n <= MaxEntries {
		return nil
	}
	return tooMany("%d entries in a list or map", MaxEntries)
}

// Check counts what a document of JSON holds, and returns an error if it is more than the bounds allow.
func Check(data []byte) error {
	_, err := scanJSON(data, false)
	return err
}
