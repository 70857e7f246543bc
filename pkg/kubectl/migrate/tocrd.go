// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// toCRD are the steps from jobset-apiserver to CustomResourceDefinitions. Until the step "serve", nothing has moved.
var toCRD = []step{
	{"open", "opening the CustomResourceDefinitions for objects", (*mover).openReturn},
	{"rehearse", "checking whether the CustomResourceDefinitions accept all objects", (*mover).rehearseBack},
	{"before", "copying the objects while users write them", (*mover).copyBefore},
	{"stop", "stopping jobset-controller", func(m *mover, ctx context.Context, _ *StepRecord) error { return m.stopOwn(ctx) }},
	{stepFreeze, "refusing writes", (*mover).freeze},
	{"copy", "copying the objects", (*mover).copyBack},
	{"seal", "refusing writes of the garbage collector as well", (*mover).seal},
	{"compare", "comparing the objects", (*mover).compareBack},
	{"orphan", "removing owner references to objects that get another UID", (*mover).orphanReplaced},
	{stepServe, "letting the CustomResourceDefinitions serve their versions", func(m *mover, ctx context.Context, _ *StepRecord) error {
		return m.each(func(s subject) error { return m.router.serve(ctx, s, true) })
	}},
	{stepRoute, "routing the groups to the CustomResourceDefinitions", func(m *mover, ctx context.Context, _ *StepRecord) error {
		return m.each(func(s subject) error { return m.router.toDefinition(ctx, s) })
	}},
	{"adopt", "restoring owner references", (*mover).adopt},
	{"hooks", "restoring the webhooks of the controllers", (*mover).restoreHooks},
	{"close", "removing the version for the migration", (*mover).closeReturn},
	{"start", "starting the controllers", (*mover).startOthers},
	{"lift", "allowing writes", (*mover).lift},
	{"forget", "forgetting what was saved", func(m *mover, _ context.Context, _ *StepRecord) error {
		clear(m.journal.Saved)
		clear(m.journal.Replicas)
		return nil
	}},
}

// openReturn lets the CustomResourceDefinitions take objects.
func (m *mover) openReturn(ctx context.Context, _ *StepRecord) error {
	return m.each(func(s subject) error { return m.router.openReturn(ctx, s) })
}

func (m *mover) closeReturn(ctx context.Context, _ *StepRecord) error {
	return m.each(func(s subject) error { return m.router.closeReturn(ctx, s) })
}

// rehearseBack finds objects that a CustomResourceDefinition does not accept.
func (m *mover) rehearseBack(ctx context.Context, _ *StepRecord) error {
	return m.each(func(s subject) error {
		got, err := m.giver(s, true).run(ctx)
		if err != nil {
			return err
		}
		dropDifferences(got)
		if len(got.problems) > 0 {
			return final(fmt.Errorf("the CustomResourceDefinition does not accept %s: correct or delete them, and run the command again",
				got.describe(s)))
		}
		return nil
	})
}

// copyBefore copies the objects while users still write them, so that only those which change must be written while writes are refused.
func (m *mover) copyBefore(ctx context.Context, _ *StepRecord) error {
	return m.each(func(s subject) error {
		if routed, err := m.router.routed(ctx, s); err != nil || !routed {
			return err
		}
		_, err := m.giver(s, false).run(ctx)
		return err
	})
}

// dropDifferences drops the problems of objects that would be accepted.
func dropDifferences(got *given) {
	maps.DeleteFunc(got.problems, func(_ types.NamespacedName, err error) bool {
		return errors.Is(err, errDiffers) || errors.Is(err, errOnlyThere)
	})
}

func (m *mover) giver(s subject, dryRun bool) *giver {
	g := &giver{client: m.dynamic, subject: s, dryRun: dryRun, progress: m.progress(s), renew: m.renew}
	if !dryRun {
		g.written = &m.written
	}
	return g
}

// copyBack writes the objects into the CustomResourceDefinitions.
func (m *mover) copyBack(ctx context.Context, record *StepRecord) error {
	return m.each(func(s subject) error { return m.giveAll(ctx, s, record, false) })
}

// compareBack writes once more what has changed until the writes of all users were refused, and compares.
func (m *mover) compareBack(ctx context.Context, record *StepRecord) error {
	return m.each(func(s subject) error {
		return errors.Join(m.giveAll(ctx, s, record, false), m.giveAll(ctx, s, record, true))
	})
}

func (m *mover) giveAll(ctx context.Context, s subject, record *StepRecord, dryRun bool) error {
	if routed, err := m.router.routed(ctx, s); err != nil || !routed {
		return err // an earlier attempt has given the group back
	}
	got, err := m.giver(s, dryRun).run(ctx)
	if err != nil {
		return err
	}
	if record.Counts == nil {
		record.Counts = map[string]int{}
	}
	record.Counts[s.definition()] = got.objects
	if m.replaced == nil {
		m.replaced = map[string]map[types.UID]types.UID{}
	}
	m.replaced[s.definition()] = got.replaced
	if len(got.problems) > 0 {
		return errors.New("not all objects are in the CustomResourceDefinition as they are in jobset-apiserver: " + got.describe(s))
	}
	return nil
}

// orphanReplaced keeps the garbage collector from the children of objects that get another UID.
func (m *mover) orphanReplaced(ctx context.Context, _ *StepRecord) error {
	replaced := sets.New[types.UID]()
	err := m.each(func(s subject) error {
		if known, ok := m.replaced[s.definition()]; ok {
			replaced = replaced.Union(sets.KeySet(known))
			return nil
		}
		got, err := m.giver(s, true).run(ctx)
		if err == nil {
			replaced = replaced.Union(sets.KeySet(got.replaced))
		}
		return err
	})
	if err != nil {
		return err
	}
	return m.orphan(ctx, replaced)
}
