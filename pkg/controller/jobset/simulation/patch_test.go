// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
)

// operation is a step of a JSON patch.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// patched returns a Job with a JSON patch, as an API server applies it. A library would take a fifth of the time of all
// histories, most of it for the parts of the Job that no patch names.
func patched(job *batchv1.Job, patch []byte) (*batchv1.Job, error) {
	var steps []operation
	if err := json.Unmarshal(patch, &steps); err != nil {
		return nil, err
	}
	next := *job
	for _, step := range steps {
		if err := step.apply(&next); err != nil {
			return nil, err
		}
	}
	return &next, nil
}

func (s operation) apply(job *batchv1.Job) error {
	if keys := mapOf(job, s.Path); keys != nil {
		return decode(s, keys)
	}
	if at := strings.LastIndexByte(s.Path, '/'); at > 0 {
		if keys := mapOf(job, s.Path[:at]); keys != nil {
			return s.changeKey(keys, strings.NewReplacer("~1", "/", "~0", "~").Replace(s.Path[at+1:]))
		}
	}
	spec, pod := &job.Spec, &job.Spec.Template.Spec
	switch s.Path {
	case "/metadata/resourceVersion":
		return decode(s, &job.ResourceVersion)
	case "/spec/suspend":
		return decode(s, &spec.Suspend)
	case "/spec/parallelism":
		return decode(s, &spec.Parallelism)
	case "/spec/completions":
		return decode(s, &spec.Completions)
	case "/spec/template/spec/tolerations":
		return decode(s, &pod.Tolerations)
	case "/spec/template/spec/schedulingGates":
		return decode(s, &pod.SchedulingGates)
	case "/status/startTime":
		if s.Op != "remove" || job.Status.StartTime == nil {
			return fmt.Errorf("%s %s", s.Op, s.Path)
		}
		job.Status.StartTime = nil
		return nil
	}
	var container int
	if _, err := fmt.Sscanf(s.Path, "/spec/template/spec/containers/%d/resources", &container); err != nil {
		return fmt.Errorf("%s %s", s.Op, s.Path)
	}
	pod.Containers = slices.Clone(pod.Containers)
	return decode(s, &pod.Containers[container].Resources)
}

// mapOf returns a field of a Job that is a map; nil for any other path.
func mapOf(job *batchv1.Job, path string) *map[string]string {
	switch path {
	case "/metadata/labels":
		return &job.Labels
	case "/metadata/annotations":
		return &job.Annotations
	case "/spec/template/metadata/labels":
		return &job.Spec.Template.Labels
	case "/spec/template/metadata/annotations":
		return &job.Spec.Template.Annotations
	case "/spec/template/spec/nodeSelector":
		return &job.Spec.Template.Spec.NodeSelector
	}
	return nil
}

// decode replaces a field by the value.
func decode[T any](s operation, field *T) error {
	var fresh T
	err := json.Unmarshal(s.Value, &fresh)
	*field = fresh
	return err
}

// changeKey sets or removes a key of a map that is there.
func (s operation) changeKey(keys *map[string]string, key string) error {
	if _, found := (*keys)[key]; *keys == nil || s.Op == "remove" && !found {
		return fmt.Errorf("%s %s", s.Op, s.Path)
	}
	*keys = maps.Clone(*keys)
	if s.Op == "remove" {
		delete(*keys, key)
		return nil
	}
	var value string
	err := decode(s, &value)
	(*keys)[key] = value
	return err
}
