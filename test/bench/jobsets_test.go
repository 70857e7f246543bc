// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions"
	listers "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/listers/jobset/v1alpha2"
)

const (
	// total is the number of JobSets that the figures are about.
	total     = 2000
	namespace = "default"
	// writers is how many JobSets are created at the same time.
	writers = 16
	// patience is the longest that the controller may take for all children and states.
	patience = 4 * time.Minute
)

// programs of ours whose memory is measured.
var programs = []string{"jobset-apiserver", "jobset-controller"}

// situation is a cluster with all JobSets in it, and what was measured on the way there.
type situation struct {
	cluster      *cluster
	idle, loaded map[string]int64
}

var loaded = sync.OnceValues(func() (*situation, error) {
	c, err := startCluster()
	if err != nil {
		return nil, err
	}
	s := &situation{cluster: c}
	if s.idle, err = c.memory(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.fill(ctx, batch{"training", total, 2}); err != nil {
		return nil, err
	}
	s.loaded, err = c.memory()
	return s, err
})

func prepare(b *testing.B) *situation {
	b.Helper()
	s, err := loaded()
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func (c *cluster) memory() (map[string]int64, error) {
	bytes := map[string]int64{}
	for _, program := range programs {
		resident, err := c.residentBytes(program)
		if err != nil {
			return nil, err
		}
		bytes[program] = resident
	}
	return bytes, nil
}

// batch is a number of sets of so many Jobs.
type batch struct {
	name       string
	sets, jobs int
}

// template is the example of a distributed training, suspended: its Jobs exist and no pods disturb the figures.
func (c *cluster) template() (*jobsetv1alpha2.JobSet, error) {
	file, err := os.Open(filepath.Join(c.root, "artifacts", "examples", "training.yaml"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		js := &jobsetv1alpha2.JobSet{}
		if err := decoder.Decode(js); err != nil {
			return nil, fmt.Errorf("finding the JobSet in %s: %w", file.Name(), err)
		}
		if js.Kind != "JobSet" {
			continue
		}
		js.Spec.Suspend = ptr.To(true)
		js.Spec.Network.Subdomain = ""
		for i := range js.Spec.ReplicatedJobs {
			js.Spec.ReplicatedJobs[i].Replicas = ptr.To[int32](1)
		}
		return js, nil
	}
}

// fill creates JobSets and waits until the controller has made their Jobs and written their states. It follows with
// a watch, since lists would show in the memory of the server.
func (c *cluster) fill(ctx context.Context, batches ...batch) error {
	config, err := c.throughKube()
	if err != nil {
		return err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	template, err := c.template()
	if err != nil {
		return err
	}
	factory := externalversions.NewSharedInformerFactory(client, 0)
	lister := factory.Jobset().V1alpha2().JobSets().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	for _, of := range batches {
		create := func(i int) error {
			_, err := client.JobsetV1alpha2().JobSets(namespace).Create(ctx, of.set(template, i), metav1.CreateOptions{})
			return err
		}
		failures := make([]error, of.sets)
		workqueue.ParallelizeUntil(ctx, writers, of.sets, func(i int) { failures[i] = create(i) })
		if err := errors.Join(failures...); err != nil {
			return fmt.Errorf("creating JobSets: %w", err)
		}
	}
	for _, of := range batches {
		var settled int
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
			settled = of.countSuspended(lister)
			return settled == of.sets, nil
		})
		if err != nil {
			return fmt.Errorf("%d of %d JobSets with %d Jobs are suspended: %w", settled, of.sets, of.jobs, err)
		}
	}
	return nil
}

// set returns one set of the batch. Its last replicatedJob has all the Jobs that the others do not have.
func (of batch) set(template *jobsetv1alpha2.JobSet, i int) *jobsetv1alpha2.JobSet {
	js := template.DeepCopy()
	js.Name = fmt.Sprintf("%s-%04d", of.name, i)
	last := len(js.Spec.ReplicatedJobs) - 1
	js.Spec.ReplicatedJobs[last].Replicas = ptr.To(int32(of.jobs - last))
	return js
}

// countSuspended counts the sets of the batch that are suspended with all of their Jobs.
func (of batch) countSuspended(lister listers.JobSetLister) int {
	sets, err := lister.List(labels.Everything())
	if err != nil {
		return 0
	}
	count := 0
	for _, js := range sets {
		var jobs int32
		for _, status := range js.Status.ReplicatedJobsStatus {
			jobs += status.Suspended
		}
		if strings.HasPrefix(js.Name, of.name+"-") && meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.JobSetSuspended) && int(jobs) == of.jobs {
			count++
		}
	}
	return count
}
