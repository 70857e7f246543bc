// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

const (
	// listPage is how many objects are read at once.
	listPage = 200
	// maxBatch is how many bytes of objects are sent at once, well below the limit of an import.
	maxBatch = migration.MaxBytes / 2
	// maxLists is how often a list is begun that expires before its end.
	maxLists = 5
)

// copied is the outcome of a copy or of a comparison of the objects of a resource.
type copied struct {
	verdicts map[migration.Verdict]int
	// problems are the results of objects that are not in the store as they are at the source, and of those that only the store has.
	problems []migration.Result
	// hash identifies all objects of the source together, as they are stored.
	hash string
}

func (c *copied) clean() bool { return len(c.problems) == 0 }

// objects is how many objects the source has.
func (c *copied) objects() (n int) {
	for verdict, count := range c.verdicts {
		if verdict != migration.Removed {
			n += count
		}
	}
	return n
}

// copier copies the objects of a resource from its CustomResourceDefinition into the store.
type copier struct {
	source  dynamic.Interface
	store   *store
	subject subject
	// dryRun compares only.
	dryRun bool
	// seen is called with each object, unless it is nil.
	seen func(*unstructured.Unstructured)
	// progress reports how many objects are done.
	progress *progress
}

// run copies all objects, and removes from the store what the source does not have. The store may have objects of an earlier
// migration, also such as jobset-apiserver has written: as long as it does not serve the group, the source is right.
func (c *copier) run(ctx context.Context) (*copied, error) {
	objects, err := c.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the %s of the CustomResourceDefinition: %w", c.subject.resource.Resource, err)
	}
	out := &copied{verdicts: map[migration.Verdict]int{}}
	known, lines := sets.New[string](), make([]string, 0, len(objects))
	c.progress.of(len(objects))
	for len(objects) > 0 {
		var batch []json.RawMessage
		batch, objects = cut(objects)
		results, err := c.store.send(ctx, migration.ImportSpec{DryRun: c.dryRun, Force: true, Objects: batch})
		if err != nil {
			return nil, err
		}
		c.progress.add(len(batch))
		for _, r := range results {
			out.verdicts[r.Verdict]++
			known.Insert(r.Namespace + "/" + r.Name)
			lines = append(lines, fmt.Sprintf("%s/%s %s %s", r.Namespace, r.Name, r.UID, r.Hash))
			written := r.Verdict == migration.Created || r.Verdict == migration.Updated
			if r.Verdict != migration.Unchanged && (c.dryRun || !written) {
				out.problems = append(out.problems, r)
			}
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	out.hash = hex.EncodeToString(sum[:])
	return out, c.remove(ctx, known, out)
}

// remove removes what only the store has.
func (c *copier) remove(ctx context.Context, known sets.Set[string], out *copied) error {
	items, err := c.store.inventory(ctx, c.subject.definition())
	if err != nil {
		return err
	}
	var gone []migration.Reference
	for _, item := range items {
		if !known.Has(item.Namespace + "/" + item.Name) {
			gone = append(gone, migration.Reference{Resource: c.subject.definition(), Namespace: item.Namespace, Name: item.Name, UID: item.UID})
		}
	}
	for batch := range slices.Chunk(gone, migration.MaxObjects) {
		results, err := c.store.send(ctx, migration.ImportSpec{DryRun: c.dryRun, Force: true, Removed: batch})
		if err != nil {
			return err
		}
		for _, r := range results {
			out.verdicts[r.Verdict]++
			if c.dryRun && r.Verdict == migration.Removed {
				r.Message = "only the store has it"
			}
			if c.dryRun || r.Verdict != migration.Removed && r.Verdict != migration.Unchanged {
				out.problems = append(out.problems, r)
			}
		}
	}
	return nil
}

// cut takes objects from the beginning that fit into one import.
func cut(objects []json.RawMessage) (batch, rest []json.RawMessage) {
	bytes := 0
	for i, object := range objects {
		if i == migration.MaxObjects || i > 0 && bytes+len(object) > maxBatch {
			return objects[:i], objects[i:]
		}
		bytes += len(object)
	}
	return objects, nil
}

// list reads all objects as they were at one time.
func (c *copier) list(ctx context.Context) (objects []json.RawMessage, err error) {
	for range maxLists {
		if objects, err = c.pages(ctx); !apierrors.IsResourceExpired(err) {
			return objects, err
		}
	}
	return nil, err
}

func (c *copier) pages(ctx context.Context) (objects []json.RawMessage, err error) {
	options := metav1.ListOptions{Limit: listPage}
	for {
		var page *unstructured.UnstructuredList
		if page, err = c.source.Resource(c.subject.resource).List(ctx, options); err != nil {
			return nil, err
		}
		for i := range page.Items {
			if c.seen != nil {
				c.seen(&page.Items[i])
			}
			text, err := page.Items[i].MarshalJSON()
			if err != nil {
				return nil, err
			}
			objects = append(objects, text)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return objects, nil
		}
	}
}
