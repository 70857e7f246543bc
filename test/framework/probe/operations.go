// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

const (
	// listed is the number of objects in a list, appliedTo the number of objects that are applied in turn.
	listed, appliedTo = 10, 20
	readKey           = "probe/read"
	valueKey          = "probe/value"
	// created begins the names of the objects that are created one after the other.
	created = "create-"
)

func (p *Probe) get(ctx context.Context, n int) error {
	return request(p.client.Get(), p.namespace).Name(fmt.Sprintf("read-%d", n%listed)).Do(ctx).Error()
}

func (p *Probe) list(ctx context.Context, _ int) error {
	var found jobsetv1alpha2.JobSetList
	options := &metav1.ListOptions{LabelSelector: readKey}
	if err := request(p.client.Get(), p.namespace).VersionedParams(options, scheme.ParameterCodec).Do(ctx).Into(&found); err != nil {
		return err
	}
	if len(found.Items) != listed {
		return fmt.Errorf("the list has %d objects, must have %d", len(found.Items), listed)
	}
	return nil
}

// request is one that is not repeated.
func request(r *rest.Request, namespace string) *rest.Request {
	return r.Namespace(namespace).Resource("jobsets").MaxRetries(0)
}

// writes are the writes of the probe, with what was acknowledged.
type writes struct {
	client    rest.Interface
	namespace string

	mu      sync.Mutex
	created map[string]time.Time
	applied map[string]*applied
}

// applied is an object that is applied with ever higher values.
type applied struct {
	busy bool
	// last is the acknowledged value.
	last string
	// possible are the values that the object may have: the last acknowledged one, and values whose writes have no known outcome.
	possible map[string]bool
}

func jobSet(name string, labels map[string]string) *jobsetv1alpha2.JobSet {
	return builders.JobSet(name, builders.WithJobs("w", 1, 1), func(js *jobsetv1alpha2.JobSet) {
		js.TypeMeta = metav1.TypeMeta{APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSet"}
		js.Namespace, js.Labels = "", labels
		suspended := true
		js.Spec.Suspend = &suspended
	})
}

// put creates an object unless it exists.
func (w *writes) put(ctx context.Context, name string, labels map[string]string) error {
	err := request(w.client.Post(), w.namespace).Body(jobSet(name, labels)).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (w *writes) create(ctx context.Context, n int) error {
	name := fmt.Sprint(created, n)
	err := request(w.client.Post(), w.namespace).Body(jobSet(name, nil)).Do(ctx).Error()
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.created[name] = time.Now()
	}
	return err
}

func (w *writes) apply(ctx context.Context, n int) error {
	name, value := fmt.Sprintf("apply-%d", n%appliedTo), strconv.Itoa(n)
	object := w.take(name, value)
	if object == nil {
		return errSkipped
	}
	body, err := json.Marshal(jobSet(name, map[string]string{valueKey: value}))
	if err == nil {
		err = request(w.client.Patch(types.ApplyPatchType), w.namespace).Name(name).Param("fieldManager", "probe").Param("force", "true").
			Body(body).Do(ctx).Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	object.busy = false
	if err == nil && object.last != "" {
		delete(object.possible, object.last)
	}
	if err == nil {
		object.last = value
	}
	return err
}

// take returns an object that is to get the value; nil if the request before has not been answered.
func (w *writes) take(name, value string) *applied {
	w.mu.Lock()
	defer w.mu.Unlock()
	object := w.applied[name]
	if object == nil {
		object = &applied{possible: map[string]bool{}}
		w.applied[name] = object
	}
	if object.busy {
		return nil
	}
	object.busy = true
	object.possible[value] = true
	return object
}

func (w *writes) acknowledged() map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.created)
}

// stored are all objects, with their values.
func (w *writes) stored(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var found jobsetv1alpha2.JobSetList
	if err := request(w.client.Get(), w.namespace).Do(ctx).Into(&found); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for i := range found.Items {
		values[found.Items[i].Name] = found.Items[i].Labels[valueKey]
	}
	return values, nil
}

// missing lists the acknowledged writes that are not stored.
func (w *writes) missing(acknowledged map[string]time.Time, stored map[string]string) (lost []string) {
	for name := range acknowledged {
		if _, found := stored[name]; !found {
			lost = append(lost, name+" is not stored")
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, object := range w.applied {
		if value := stored[name]; object.last != "" && !object.busy && !object.possible[value] {
			lost = append(lost, fmt.Sprintf("%s has the value %q; %q was acknowledged", name, value, object.last))
		}
	}
	return lost
}
