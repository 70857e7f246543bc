// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// target is a kind of object that is written, in JSON, by one client that waits for each answer.
type target struct {
	name   string
	client rest.Interface
	// body is a new object.
	body func(name string) ([]byte, error)
	// update changes an object as it was answered; to is the subresource that takes it.
	update func(object map[string]any)
	to     string
	// stored are the latest answers.
	stored [][]byte
}

// write measures single requests for sets, and for ConfigMaps of the same size as a yardstick.
func write(ctx context.Context, r *runner) error {
	return r.each(ctx, unwatched, func(ctx context.Context, s *space) error {
		resources, err := s.resources(ctx)
		if err != nil {
			return err
		}
		for _, of := range resources {
			for _, request := range []struct {
				verb string
				do   func(ctx context.Context, of *target, i int) ([]byte, error)
			}{{"create", s.create}, {"patch", s.patch}, {"get", s.get}, {"status", s.status}} {
				if err := s.repeat(ctx, of, request.verb, request.do); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// resources returns sets as users reach them, sets without the way through kube-apiserver if there is one, and ConfigMaps.
func (s *space) resources(ctx context.Context) ([]*target, error) {
	kube, err := kubernetes.NewForConfig(s.Cluster.Config(runtime.ContentTypeJSON))
	if err != nil {
		return nil, err
	}
	through, err := versioned.NewForConfig(s.Cluster.Config(runtime.ContentTypeJSON))
	if err != nil {
		return nil, err
	}
	sets := s.jobSetResource("jobsets", through.JobsetV1alpha2().RESTClient())
	resources := []*target{sets}
	if s.Cluster.Dir != "" && !s.Cluster.Upstream {
		config, err := s.Cluster.Direct(runtime.ContentTypeJSON)
		if err != nil {
			return nil, err
		}
		direct, err := versioned.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		resources = append(resources, s.jobSetResource("jobsets without the hop", direct.JobsetV1alpha2().RESTClient()))
	}
	maps := &target{name: "configmaps", client: kube.CoreV1().RESTClient()}
	maps.update = func(object map[string]any) {
		object["metadata"].(map[string]any)["annotations"] = map[string]any{"state": "running"}
	}
	// One set and one ConfigMap without padding show by how much the ConfigMap must be padded.
	padding := 0
	maps.body = func(name string) ([]byte, error) {
		return json.Marshal(&corev1.ConfigMap{
			TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: objectMeta(name, s.name), Data: map[string]string{"data": strings.Repeat("x", padding)},
		})
	}
	ofSet, err := s.createNamed(ctx, sets, "sample")
	if err != nil {
		return nil, err
	}
	ofMap, err := s.createNamed(ctx, maps, "sample")
	if err != nil {
		return nil, err
	}
	padding = max(len(ofSet)-len(ofMap), 0)
	return append(resources, maps), nil
}

func (s *space) jobSetResource(name string, client rest.Interface) *target {
	return &target{
		name: name, client: client, to: "status",
		body: func(name string) ([]byte, error) { return json.Marshal(typicalSet(name, s.name)) },
		update: func(object map[string]any) {
			object["status"] = map[string]any{"restarts": 1, "replicatedJobsStatus": []any{
				map[string]any{"name": "launcher", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0},
				map[string]any{"name": "workers", "ready": 2, "succeeded": 0, "failed": 0, "active": 2, "suspended": 0},
			}}
		},
	}
}

// repeat measures one request after the other, of which each is timed until its answer has been read.
func (s *space) repeat(ctx context.Context, of *target, verb string, do func(context.Context, *target, int) ([]byte, error)) error {
	n := s.Sizes.Writes
	if len(of.stored) == 0 {
		of.stored = make([][]byte, n)
	}
	var spent []float64
	phase, err := s.measure(ctx, verb+" "+of.name, func(ctx context.Context) error {
		for i := range n {
			begin := time.Now()
			answer, err := do(ctx, of, i)
			if err != nil {
				return err
			}
			spent = append(spent, millis(time.Since(begin)))
			of.stored[i] = answer
		}
		return nil
	})
	if err != nil {
		return err
	}
	phase.Add("p50", report.UnitMillis, report.Percentile(spent, 50))
	phase.Add("p99", report.UnitMillis, report.Percentile(spent, 99))
	phase.Add("bytes of each", report.UnitBytes, float64(len(of.stored[0])))
	return nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (s *space) create(ctx context.Context, of *target, i int) ([]byte, error) {
	return s.createNamed(ctx, of, s.written(of, i))
}

func (s *space) createNamed(ctx context.Context, of *target, name string) ([]byte, error) {
	body, err := of.body(name)
	if err != nil {
		return nil, err
	}
	return of.client.Post().Namespace(s.name).Resource(kind(of)).Body(body).DoRaw(ctx)
}

func (s *space) get(ctx context.Context, of *target, i int) ([]byte, error) {
	return of.client.Get().Namespace(s.name).Resource(kind(of)).Name(s.written(of, i)).DoRaw(ctx)
}

func (s *space) patch(ctx context.Context, of *target, i int) ([]byte, error) {
	return of.client.Patch(types.MergePatchType).Namespace(s.name).Resource(kind(of)).Name(s.written(of, i)).
		Body([]byte(`{"metadata":{"annotations":{"note":"changed"}}}`)).DoRaw(ctx)
}

// status updates the status, or the whole object if it has none.
func (s *space) status(ctx context.Context, of *target, i int) ([]byte, error) {
	object := map[string]any{}
	if err := json.Unmarshal(of.stored[i], &object); err != nil {
		return nil, err
	}
	of.update(object)
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	request := of.client.Put().Namespace(s.name).Resource(kind(of)).Name(s.written(of, i)).Body(body)
	if of.to != "" {
		request = request.SubResource(of.to)
	}
	return request.DoRaw(ctx)
}

// kind is the resource in paths, whichever way they lead.
func kind(of *target) string {
	name, _, _ := strings.Cut(of.name, " ")
	return name
}

// written is the name of an object, different for each way, since two ways lead to the same objects.
func (s *space) written(of *target, i int) string {
	return fmt.Sprintf("written-%d-%d", len(of.name), i)
}
