// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
)

// step is a part of a migration. It may have been begun before, and ended in the middle: whatever it finds done, it leaves
// alone.
type step struct {
	// name is its name in the journal.
	name string
	// title says what it does, in the progressive form.
	title string
	run   func(m *mover, ctx context.Context, record *StepRecord) error
}

// mover carries out a migration.
type mover struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	// metadata and discovery find objects whatever their kind.
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	store     *store
	router    *router
	clock     clock.PassiveClock
	out       io.Writer

	journal  *Journal
	subjects []subject
	// written is what this process has written back, and replaced which UIDs its last look at a resource has found to be replaced.
	written  written
	replaced map[string]map[types.UID]types.UID
	// freezeFor is how long writes are refused at most.
	freezeFor time.Duration
}

// run carries out the steps that the journal does not have as done. Each is noted before it begins and when it has ended.
func (m *mover) run(ctx context.Context, steps []step) error {
	for i := 0; i < len(steps); i++ {
		if m.journal.done(steps[i].name) {
			continue
		}
		if at := freezeAmong(steps); at >= 0 && at < i && m.thawed() {
			// Objects may have been written, or may be before the API groups are switched.
			fmt.Fprintln(m.out, "Writes are not refused any more: refusing them again, and repeating what comes after that")
			if err := lift(ctx, m.kube); err != nil {
				return err
			}
			m.journal.rewind(stepFreeze)
			m.journal.FrozenUntil = nil
			i = at
		}
		fmt.Fprintf(m.out, "%d of %d: %s\n", i+1, len(steps), steps[i].title)
		if err := m.carryOut(ctx, steps[i], i == len(steps)-1); err != nil {
			return fmt.Errorf("%s: %w", steps[i].title, err)
		}
	}
	return nil
}

func freezeAmong(steps []step) int {
	return slices.IndexFunc(steps, func(s step) bool { return s.name == stepFreeze })
}

// thawed returns whether the freeze is over, or will be soon, before all groups have been routed to the other server.
func (m *mover) thawed() bool {
	until := m.journal.FrozenUntil
	return until != nil && !m.journal.done(stepRoute) && m.clock.Now().Add(minFreeze/2).After(until.Time)
}

func (m *mover) carryOut(ctx context.Context, s step, last bool) error {
	record := m.journal.step(s.name)
	if record == nil {
		m.journal.Steps = append(m.journal.Steps, StepRecord{Name: s.name, Started: m.now()})
		record = &m.journal.Steps[len(m.journal.Steps)-1]
		if err := m.journal.write(ctx, m.kube); err != nil {
			return err
		}
	}
	if err := s.run(m, ctx, record); err != nil {
		return err
	}
	ended := m.now()
	record.Ended = &ended
	if last {
		m.journal.Ended, m.journal.FrozenUntil = &ended, nil
	}
	return m.journal.write(ctx, m.kube)
}

func (m *mover) now() metav1.Time { return metav1.NewTime(m.clock.Now()) }

func (m *mover) groups() (groups []string) {
	for _, s := range m.subjects {
		groups = append(groups, s.resource.Group)
	}
	return groups
}

// The steps with which the groups leave: stepRoute to the server, stepServe to the CustomResourceDefinitions.
const (
	stepRoute = "route"
	stepServe = "serve"
)

const stepFreeze = "freeze"

// toServer are the steps from CustomResourceDefinitions to jobset-apiserver. Until the step "route", nothing has moved.
var toServer = []step{
	{"open", "routing the migration API", (*mover).openMigration},
	{"rehearse", "checking whether jobset-apiserver accepts all objects", (*mover).rehearse},
	{"stop", "stopping the controllers", (*mover).stopControllers},
	{"hooks", "replacing the webhooks of the controllers", (*mover).removeHooks},
	{stepFreeze, "refusing writes", (*mover).freeze},
	{"copy", "copying the objects", (*mover).copy},
	{"seal", "refusing writes of the garbage collector as well", (*mover).seal},
	{"compare", "comparing the objects", (*mover).compare},
	{stepRoute, "routing the groups to jobset-apiserver", (*mover).route},
	{"watches", "ending the watches of the CustomResourceDefinitions", (*mover).endWatches},
	{"start", "starting jobset-controller", (*mover).startOwn},
	{"lift", "allowing writes", (*mover).lift},
	{"close", "removing the route of the migration API", (*mover).closeMigration},
}

// undoToServer are the steps back from a migration to the server whose API groups have not been switched. What was copied stays in the
// store of jobset-apiserver, and the next migration compares it.
var undoToServer = []step{
	{"undo-hooks", "restoring the webhooks of the controllers", (*mover).restoreHooks},
	{"undo-stop", "starting the controllers", (*mover).startOthers},
	{"undo-lift", "allowing writes", (*mover).lift},
	{"undo-open", "removing the route of the migration API", (*mover).closeMigration},
}

// undoToCRD are those back from a migration to CustomResourceDefinitions.
var undoToCRD = []step{
	{"undo-orphan", "restoring owner references", (*mover).readopt},
	{"undo-open", "removing the version for the migration", (*mover).closeReturn},
	{"undo-stop", "starting jobset-controller", (*mover).startOwn},
	{"undo-lift", "allowing writes", (*mover).lift},
}

func (m *mover) lift(ctx context.Context, _ *StepRecord) error { return lift(ctx, m.kube) }

func (m *mover) openMigration(ctx context.Context, _ *StepRecord) error {
	return m.router.openMigration(ctx)
}

func (m *mover) closeMigration(ctx context.Context, _ *StepRecord) error {
	return m.router.closeMigration(ctx)
}

// present returns the subjects whose CustomResourceDefinition exists.
func present(ctx context.Context, client dynamic.Interface) (found []subject, err error) {
	for _, s := range subjects {
		_, err := client.Resource(definitions).Get(ctx, s.definition(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("CustomResourceDefinition %s: %w", s.definition(), err)
		}
		found = append(found, s)
	}
	return found, nil
}
