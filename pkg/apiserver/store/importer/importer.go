// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// maxBytes bounds all objects of an import as they are stored. They are checked before the first is written, and kept until then.
	maxBytes = 128 << 20
	// maxRaces is how often an object is tried that others write at the same time.
	maxRaces = 5
)

// Source calls a function for each object of some resources, as JSON.
type Source func(ctx context.Context, fn func([]byte) error) error

// Import is one.
type Import struct {
	Kinds *Kinds
	Store *Store
	// SkipInvalid leaves out what this version does not accept.
	SkipInvalid bool
	// DropUnknown drops fields that this version does not know.
	DropUnknown bool
	// Prune deletes what was imported before and is not at the source any more.
	Prune bool
	// Force makes the source right whatever the store has. It is for groups that are not served from the store.
	Force bool
	// DryRun writes nothing.
	DryRun bool
	// Report is called for each object that is not imported or that differs, with the cause, and with whether that fails the command.
	Report func(name string, cause error, fails bool)

	objects []*object
	bytes   int
	refused int
	// nameless says that the name of an object that was refused is not known: the store may have it.
	nameless bool
	seen     sets.Set[Name]
	failed   int
}

// Counts are how many objects have which verdict.
type Counts map[schema.GroupResource]map[Verdict]int

// Objects is how many objects were read and accepted.
func (i *Import) Objects() int { return len(i.objects) }

// Refused is how many objects were read and not accepted.
func (i *Import) Refused() int { return i.refused }

// Resources are the resources of the objects that were read, sorted.
func (i *Import) Resources() []schema.GroupResource {
	var resources []schema.GroupResource
	for _, o := range i.objects {
		if !slices.Contains(resources, o.GroupResource) {
			resources = append(resources, o.GroupResource)
		}
	}
	return resources
}

// Read takes all objects from the source, and checks them.
func (i *Import) Read(ctx context.Context, source Source) error {
	i.seen = sets.New[Name]()
	err := source(ctx, func(data []byte) error {
		o, err := i.Kinds.decode(ctx, data, i.DropUnknown)
		if err == nil && i.seen.Has(o.Name) {
			err = errors.New("the source must have it once, not twice")
		}
		if err != nil {
			i.refuse(data, err)
			return nil
		}
		i.seen.Insert(o.Name)
		i.objects = append(i.objects, o)
		if i.bytes += len(o.data); i.bytes > maxBytes {
			return fmt.Errorf("the source must have at most %d bytes of objects as they are stored: import one namespace after the other, each "+
				"from a file", maxBytes)
		}
		return nil
	})
	slices.SortFunc(i.objects, func(a, b *object) int { return compare(a.String(), b.String()) })
	return err
}

// refuse leaves out an object. It is at the source, so it is not pruned.
func (i *Import) refuse(data []byte, err error) {
	i.refused++
	name, text, ok := i.Kinds.name(data)
	i.Report(text, err, !i.SkipInvalid)
	if !ok {
		i.nameless = true
		return
	}
	i.seen.Insert(name)
}

// Write stores the objects, and returns what became of them and how many could not be stored. One that cannot keeps no other from being.
func (i *Import) Write(ctx context.Context, resources []schema.GroupResource) (Counts, int, error) {
	counts := Counts{}
	for _, resource := range resources {
		counts[resource] = map[Verdict]int{}
	}
	for _, o := range i.objects {
		verdict, err := i.retry(func() (Verdict, error) { return i.one(ctx, o) })
		if err := i.count(ctx, counts, o.Name, verdict, err); err != nil {
			return counts, i.failed, err
		}
	}
	for _, resource := range resources {
		err := i.Store.names(ctx, resource, func(n Name) error {
			if i.seen.Has(n) {
				return nil
			}
			verdict, err := i.retry(func() (Verdict, error) { return i.absent(ctx, n) })
			return i.count(ctx, counts, n, verdict, err)
		})
		if err != nil {
			return counts, i.failed, err
		}
	}
	return counts, i.failed, nil
}

// count notes what became of an object. It returns an error if the import ends.
func (i *Import) count(ctx context.Context, counts Counts, n Name, verdict Verdict, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		i.failed++
		i.Report(n.String(), err, true)
	case verdict != "":
		if counts[n.GroupResource] == nil {
			counts[n.GroupResource] = map[Verdict]int{}
		}
		counts[n.GroupResource][verdict]++
	}
	return nil
}

func (i *Import) retry(try func() (Verdict, error)) (Verdict, error) {
	for attempt := 1; ; attempt++ {
		verdict, err := try()
		if !errors.Is(err, errRaced) || attempt == maxRaces {
			return verdict, err
		}
	}
}

// one imports an object.
func (i *Import) one(ctx context.Context, o *object) (Verdict, error) {
	before, err := i.Store.read(ctx, o.Name)
	if err != nil {
		return "", err
	}
	verdict, err := i.Kinds.decide(o, before)
	if i.Force {
		verdict, err = force(before, verdict, err)
	}
	if err != nil || verdict == Unchanged || i.DryRun {
		return verdict, err
	}
	return verdict, i.Store.write(ctx, o, before)
}

// absent looks at an object that the source does not have. One that was not imported, or was written since, belongs to the server.
func (i *Import) absent(ctx context.Context, n Name) (Verdict, error) {
	before, err := i.Store.read(ctx, n)
	switch {
	case err != nil:
		return "", err
	case before.revision == 0, !before.untouched():
		return "", nil
	case i.nameless:
		return "", errNameless
	case !i.Prune:
		return "", errGone
	case i.DryRun:
		return Pruned, nil
	}
	return Pruned, i.Store.remove(ctx, n, before)
}
