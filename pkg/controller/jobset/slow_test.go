// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	jobsetclient "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
)

type (
	batchV1 struct{ batchclient.BatchV1Interface }
	jobs    struct{ batchclient.JobInterface }
)

// slowAPI creates each Job after a while. The fake client answers one request at a time.
type slowAPI struct {
	kubernetes.Interface
	batchV1
	jobs
	takes         time.Duration
	begun, stored atomic.Int64
}

func (s *slowAPI) BatchV1() batchclient.BatchV1Interface { return s }
func (s *slowAPI) Jobs(string) batchclient.JobInterface  { return s }
func (s *slowAPI) Create(ctx context.Context, job *batchv1.Job, _ metav1.CreateOptions) (*batchv1.Job, error) {
	s.begun.Add(1)
	select {
	case <-time.After(s.takes):
		s.stored.Add(1)
		return job, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type (
	jobSetV1 struct {
		jobsetclient.JobsetV1alpha2Interface
	}
	jobSets struct{ jobsetclient.JobSetInterface }
)

// strictAPI stores a status only if there is time left. The fake client does not look at the context.
type strictAPI struct {
	versioned.Interface
	jobSetV1
	jobSets
}

func (s *strictAPI) JobsetV1alpha2() jobsetclient.JobsetV1alpha2Interface { return s }
func (s *strictAPI) JobSets(string) jobsetclient.JobSetInterface          { return s }
func (s *strictAPI) UpdateStatus(ctx context.Context, js *jobsetv1alpha2.JobSet, options metav1.UpdateOptions) (*jobsetv1alpha2.JobSet, error) {
	deadline, limited := ctx.Deadline()
	if left := time.Until(deadline); !limited || left != children.StatusTimeout {
		return nil, fmt.Errorf("the status write has %v", left)
	}
	return s.Interface.JobsetV1alpha2().JobSets(js.Namespace).UpdateStatus(ctx, js, options)
}

// TestPassEndsInTime has hundreds of Jobs created by an API that takes its time. The pass must not use up the time in
// which the status is stored, and end early when the program is to end.
func TestPassEndsInTime(t *testing.T) {
	const roundTrip = 5001 * time.Millisecond
	for name, tc := range map[string]struct {
		takes, stopAfter time.Duration
		want             outcome
	}{
		// 4, 8, 16 and 32 Jobs, and then 50 at a time.
		"the time of the pass is over": {
			takes: roundTrip, stopAfter: time.Hour,
			want: outcome{Begun: 60 + 8*50, Created: 60 + 8*50, Took: 12 * roundTrip, Again: queue.Due{Continue: true, Deadline: time.Minute}, Status: 3},
		},
		"the program is to end": {
			takes: roundTrip, stopAfter: 24500 * time.Millisecond,
			want: outcome{Begun: 60 + 50, Created: 60 + 50, Took: 5 * roundTrip, Again: queue.Due{Continue: true, Deadline: time.Minute}, Status: 3},
		},
		"the program is to end, and the API hangs": {
			takes: time.Hour, stopAfter: 9500 * time.Millisecond,
			want: outcome{
				Begun: 4, Took: 14500 * time.Millisecond, Again: queue.After(time.Minute), Status: 3,
				Error: `500 jobs could not be created: job "js-a-0" creation failed with error: context canceled` +
					"\njob \"js-a-1\" creation failed with error: context canceled\njob \"js-a-2\" creation failed with error: context canceled" +
					"\nand 1 more",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := sizedSet(2000)
			r := newRig(t, set)
			api := &slowAPI{Interface: r.Kube, takes: tc.takes}
			r.Kube, r.JobSets = api, &strictAPI{Interface: r.jobSets}
			r.Syncer = newSyncer(r.Controller, *r.deps.Host)
			p := plan.Decide(plan.Observed{JobSet: set})
			p.Status = &jobsetv1alpha2.JobSetStatus{Restarts: 3}
			var got outcome
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.stopAfter)
				q := queue.New("slow")
				q.Add(cache.MetaObjectToName(set))
				begin := time.Now()
				q.Run(ctx, 1, func(ctx context.Context, key cache.ObjectName) (queue.Due, error) {
					defer cancel()
					out, err := r.carryOut(ctx, &plan.Observed{JobSet: set}, p)
					got.Again = queue.Due{Deadline: out.RequeueAfter, Continue: out.Continue}
					got.Took, got.Error = time.Since(begin), errorText(err)
					return queue.Due{}, nil
				})
			})
			got.Begun, got.Created = api.begun.Load(), api.stored.Load()
			stored, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Get(t.Context(), "js", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got.Status = stored.Status.Restarts
			diff(t, "outcome", tc.want, got)
		})
	}
}

// outcome is what became of a pass.
type outcome struct {
	// Begun and Created are numbers of Jobs.
	Begun, Created int64
	Took           time.Duration
	// Again is when to look again.
	Again queue.Due
	// Status is the number of restarts that is stored.
	Status int32
	Error  string
}
