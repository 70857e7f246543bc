// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// memory is an archive.
type memory struct {
	archive.Store

	mu   sync.Mutex
	runs map[archive.Key]api.Run
	away bool
	// refused are runs that it does not take.
	refused map[archive.Key]bool
}

func (m *memory) Put(_ context.Context, runs []api.Run) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errAway
	}
	for i := range runs {
		if key := archive.KeyOf(&runs[i]); m.refused[key] {
			return fmt.Errorf("%s is refused", key)
		}
	}
	for i := range runs {
		key := archive.KeyOf(&runs[i])
		if before, ok := m.runs[key]; !ok || !before.EndTime.After(runs[i].EndTime.Time) {
			m.runs[key] = runs[i]
		}
	}
	return nil
}

func (m *memory) Missing(_ context.Context, runs []archive.Ended) (missing []archive.Key, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errAway
	}
	for _, run := range runs {
		if _, ok := m.runs[run.Key]; !ok {
			missing = append(missing, run.Key)
		}
	}
	return missing, nil
}

func (m *memory) set(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

// states returns what the archive has, as "name.execution" and state.
func (m *memory) states() map[string]api.RunState {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := map[string]api.RunState{}
	for _, run := range m.runs {
		states[fmt.Sprintf("%s.%d", run.Object.Name, run.Object.Execution)] = run.State
	}
	return states
}

func (m *memory) run(name string, execution int32) (api.Run, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	run, ok := m.runs[archive.Key{Object: types.UID("uid-of-" + name), Execution: execution}]
	return run, ok
}

// describe describes the runs of JobSets in tests: the number of restarts counts executions.
func describe(object runtime.Object, now time.Time) *api.Run {
	set := object.(*jobset.JobSet)
	switch set.Labels["describe"] {
	case "panics":
		panic("this JobSet is beyond me")
	case "never began":
		return nil
	}
	key := archive.Key{Object: set.UID, Execution: set.Status.Restarts + 1}
	run := &api.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: key.Name(set.Name), UID: key.UID()},
		Object:     api.RunObject{Kind: "JobSet", Name: set.Name, UID: key.Object, Execution: key.Execution},
		State:      api.RunState(set.Status.TerminalState), EndTime: metav1.NewMicroTime(now),
	}
	if run.State != "" {
		run.EndTime = metav1.NewMicroTime(start.Add(time.Duration(key.Execution) * time.Second))
	}
	return run
}
