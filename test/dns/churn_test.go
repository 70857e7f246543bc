// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

const (
	churned = 50
	// between is the time between two deletions of pods, and pause that between two look-ups of one asker.
	between, pause = 100 * time.Millisecond, 20 * time.Millisecond
	askers         = 4
	// stale is how long an answer may be of the past: a write of the controller, and what CoreDNS keeps of answers for two
	// times its 5 seconds.
	stale = 15 * time.Second
)

// lookUps is the number of look-ups: JOBSET_DNS_LOOKUPS, 10,000 without it.
func lookUps(t *testing.T) int {
	t.Helper()
	text := os.Getenv("JOBSET_DNS_LOOKUPS")
	if text == "" {
		return 10000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 100 {
		t.Fatalf("JOBSET_DNS_LOOKUPS must be a number from 100, not %q", text)
	}
	return n
}

func trainingSet() *jobsetv1alpha2.JobSet {
	return &jobsetv1alpha2.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec: jobsetv1alpha2.JobSetSpec{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{
			Name: "w", Replicas: ptr.To[int32](churned),
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](1000000),
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"jobset-apiserver.io/kwok-outcome": "running"}},
					Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{
						{Name: "main", Image: "registry.example/trainer:v1", Ports: []corev1.ContainerPort{{ContainerPort: 80}}},
					}},
				},
			}},
		}}},
	}
}

// TestNamesUnderChurn looks up the addresses and the SRV records of pods that are replaced all the time.
func TestNamesUnderChurn(t *testing.T) {
	resolver, namespace := startDNS(t), newNamespace(t)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	truth := &history{hosts: map[string][]*spell{}, open: map[string]*spell{}}
	running.Go(func() { truth.follow(ctx, t, namespace) })
	if _, err := sets.JobsetV1alpha2().JobSets(namespace).Create(ctx, trainingSet(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "all pods have names", func(ctx context.Context) error {
		_, srv, err := resolver.LookupSRV(ctx, "tcp-80", "tcp", "train."+namespace+".svc."+domain+".")
		if len(srv) != churned {
			return fmt.Errorf("%d SRV records, %w", len(srv), err)
		}
		return nil
	})
	running.Go(func() { churn(ctx, t, namespace) })
	n := lookUps(t)
	results := make([][]answer, askers)
	var asking sync.WaitGroup
	for i := range askers {
		asking.Go(func() { results[i] = ask(ctx, resolver, namespace, n/askers) })
	}
	asking.Wait()
	truth.report(t, slices.Concat(results...))
}

// churn deletes one pod after another, until the context ends.
func churn(ctx context.Context, t *testing.T, namespace string) {
	pods := kube.CoreV1().Pods(namespace)
	for ctx.Err() == nil {
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running", ResourceVersion: "0"})
		if err == nil && len(list.Items) > 0 {
			err = pods.Delete(ctx, list.Items[rand.IntN(len(list.Items))].Name, metav1.DeleteOptions{})
		}
		if err != nil && ctx.Err() == nil {
			t.Logf("deleting a pod: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(between):
		}
	}
}

// answer is what one look-up has found: the addresses of a host, or the hosts of SRV records.
type answer struct {
	begun, ended time.Time
	// host is empty for SRV records.
	host  string
	found []string
	err   error
}

// ask looks names up: in one of ten cases SRV records, else the addresses of a pod.
func ask(ctx context.Context, resolver *net.Resolver, namespace string, n int) (answers []answer) {
	for i := range n {
		a := answer{begun: time.Now()}
		if i%10 == 0 {
			var records []*net.SRV
			_, records, a.err = resolver.LookupSRV(ctx, "tcp-80", "tcp", "train."+namespace+".svc."+domain+".")
			for _, r := range records {
				a.found = append(a.found, strings.SplitN(r.Target, ".", 2)[0])
			}
		} else {
			a.host = fmt.Sprintf("train-w-%d-0", rand.IntN(churned))
			a.found, a.err = resolver.LookupHost(ctx, a.host+".train."+namespace+".svc."+domain+".")
		}
		var missing *net.DNSError
		if errors.As(a.err, &missing) && missing.IsNotFound {
			a.err = nil
		}
		a.ended = time.Now()
		answers = append(answers, a)
		time.Sleep(pause)
	}
	return answers
}
