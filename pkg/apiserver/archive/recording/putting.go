// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/klog/v2"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

const (
	// maxBatch is how many runs the archive gets at once, and maxBatchBytes how large their details are.
	maxBatch      = 100
	maxBatchBytes = 8 << 20
	// maxRefused is how many runs the archive refuses in a row before it counts as one that takes none: its disk may be full.
	maxRefused = 5
)

// errRefused means that the archive answers, but takes none of the runs that it was given.
var errRefused = errors.New("the archive answers, but it refuses to store runs")

// batch are runs that the archive gets at once.
type batch struct {
	runs  []api.Run
	bytes int
}

func (b *batch) add(run *api.Run) {
	b.runs = append(b.runs, *run)
	if run.Details != nil {
		b.bytes += len(run.Details.Spec.Raw) + len(run.Details.Status.Raw)
	}
}

func (b *batch) full() bool { return len(b.runs) >= maxBatch || b.bytes >= maxBatchBytes }

// refusals are runs that the archive does not take although it answers.
type refusals map[archive.Key]error

// put stores runs. If the archive refuses them together, each is tried alone, so that one cannot keep others out. An error means that the
// archive does not answer, or takes none of the first runs; the others are not tried then. What was stored before is known to be.
func (r *Recorder) put(ctx context.Context, runs []api.Run) (refusals, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	err := r.putTogether(ctx, runs)
	if err == nil {
		return nil, nil
	}
	if !r.answers(ctx, &runs[0]) {
		return nil, fmt.Errorf("storing %d runs: %w", len(runs), err)
	}
	refused := refusals{}
	for i := range runs {
		if len(refused) == i && i >= maxRefused {
			return refused, errRefused
		}
		one := runs[i : i+1]
		if len(runs) > 1 {
			err = r.putTogether(ctx, one)
		}
		if err == nil {
			continue
		}
		if !r.answers(ctx, &one[0]) {
			return refused, fmt.Errorf("storing the run of %s: %w", archive.KeyOf(&one[0]), err)
		}
		recordedTotal.WithLabelValues(resultRefused).Inc()
		klog.FromContext(ctx).Error(err, "The archive refuses a run; it is tried again later", "run", klog.KObj(&one[0]),
			"uid", one[0].Object.UID)
		refused[archive.KeyOf(&one[0])] = err
	}
	return refused, nil
}

func (r *Recorder) putTogether(ctx context.Context, runs []api.Run) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := r.Store.Put(ctx, runs); err != nil {
		return err
	}
	recordedTotal.WithLabelValues(resultStored).Add(float64(len(runs)))
	for i := range runs {
		r.stored.add(archive.KeyOf(&runs[i]), runs[i].EndTime.Time)
	}
	return nil
}

// answers returns whether the archive answers a question about a run.
func (r *Recorder) answers(ctx context.Context, run *api.Run) bool {
	_, err := r.missing(ctx, []archive.Ended{endedOf(run)})
	return err == nil
}

func endedOf(run *api.Run) archive.Ended {
	return archive.Ended{Key: archive.KeyOf(run), End: run.EndTime.Time}
}

// missing returns which runs the archive does not have and would take, and remembers the others.
func (r *Recorder) missing(ctx context.Context, runs []archive.Ended) (map[archive.Key]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	keys, err := r.Store.Missing(ctx, runs)
	if err != nil {
		return nil, fmt.Errorf("asking the archive for %d runs: %w", len(runs), err)
	}
	missing := make(map[archive.Key]bool, len(keys))
	for _, key := range keys {
		missing[key] = true
	}
	for _, run := range runs {
		if !missing[run.Key] {
			r.stored.add(run.Key, run.End)
		}
	}
	return missing, nil
}
