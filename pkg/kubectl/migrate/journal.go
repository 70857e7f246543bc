// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// systemNamespace has jobset-apiserver, and what a migration notes.
	systemNamespace = "jobset-system"
	// journalName is the name of the ConfigMap of the journal and of the Lease that one migration at a time holds.
	journalName = "jobset-apiserver-migration"
	journalKey  = "journal.json"
	// savedPrefix begins the keys of objects that the way back restores.
	savedPrefix = "saved."
)

// Direction says where objects move.
type Direction string

// Directions.
const (
	ToServer Direction = "to-server"
	ToCRD    Direction = "to-crd"
)

// Journal is what a migration has done. It is stored in a ConfigMap, so that a migration that was killed goes on from there.
type Journal struct {
	// ID names the migration in messages.
	ID        string      `json:"id"`
	Direction Direction   `json:"direction"`
	Started   metav1.Time `json:"started"`
	// Undoing is set when the migration is being undone: its steps cannot be continued any more.
	Undoing bool `json:"undoing,omitempty"`
	// Ended is set when the last step is done.
	Ended *metav1.Time `json:"ended,omitempty"`
	// Resources are the resources that move, as <resource>.<group>.
	Resources []string `json:"resources"`
	// FrozenUntil is when writes are accepted again, whatever has become of the migration.
	FrozenUntil *metav1.Time `json:"frozenUntil,omitempty"`
	// Steps are the steps that have begun, in their order.
	Steps []StepRecord `json:"steps,omitempty"`
	// Replicas says how many replicas the Deployments of the other controllers had, by namespace/name. A migration
	// to the server passes them on to the next migrations, until one back has used them.
	Replicas map[string]int32 `json:"replicas,omitempty"`
	// OwnReplicas says how many the Deployments of jobset-controller had.
	OwnReplicas map[string]int32 `json:"ownReplicas,omitempty"`

	// Saved are the webhook configurations of the other controllers, by a name that fits into a key of a ConfigMap. They are
	// handed on like Replicas.
	Saved map[string]json.RawMessage `json:"-"`

	stored *corev1.ConfigMap
}

// StepRecord is a step that has begun.
type StepRecord struct {
	Name    string       `json:"name"`
	Started metav1.Time  `json:"started"`
	Ended   *metav1.Time `json:"ended,omitempty"`
	// Counts are numbers of objects by resource.
	Counts map[string]int `json:"counts,omitempty"`
	// Hashes identify all objects of a resource together.
	Hashes map[string]string `json:"hashes,omitempty"`
}

// step returns the record of a step; nil if it has not begun.
func (j *Journal) step(name string) *StepRecord {
	at := slices.IndexFunc(j.Steps, func(s StepRecord) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &j.Steps[at]
}

// done returns whether a step has ended.
func (j *Journal) done(name string) bool {
	s := j.step(name)
	return s != nil && s.Ended != nil
}

// counts are the numbers of objects, for the status.
func (s *StepRecord) counts() (text string) {
	for _, resource := range slices.Sorted(maps.Keys(s.Counts)) {
		text += fmt.Sprintf(", %d %s", s.Counts[resource], resource)
	}
	return text
}

// subjects are the kinds that move.
func (j *Journal) subjects() (found []subject) {
	for _, s := range subjects {
		if slices.Contains(j.Resources, s.definition()) {
			found = append(found, s)
		}
	}
	return found
}

// rewind forgets a step and those after it.
func (j *Journal) rewind(name string) {
	if at := slices.IndexFunc(j.Steps, func(s StepRecord) bool { return s.Name == name }); at >= 0 {
		j.Steps = j.Steps[:at]
	}
}

// readJournal returns the journal of the last migration; nil if there was none.
func readJournal(ctx context.Context, client kubernetes.Interface) (*Journal, error) {
	cm, err := client.CoreV1().ConfigMaps(systemNamespace).Get(ctx, journalName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the journal of migrations: %w", err)
	}
	j := &Journal{stored: cm, Saved: map[string]json.RawMessage{}, Replicas: map[string]int32{}, OwnReplicas: map[string]int32{}}
	if err := json.Unmarshal([]byte(cm.Data[journalKey]), j); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w", systemNamespace, journalName, journalKey, err)
	}
	for key, content := range cm.Data {
		if name, ok := strings.CutPrefix(key, savedPrefix); ok {
			j.Saved[name] = json.RawMessage(content)
		}
	}
	return j, nil
}

// write stores the journal. It fails if something else has written it since it was read.
func (j *Journal) write(ctx context.Context, client kubernetes.Interface) error {
	content, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	data := map[string]string{journalKey: string(content)}
	for name, object := range j.Saved {
		data[savedPrefix+name] = string(object)
	}
	configMaps := client.CoreV1().ConfigMaps(systemNamespace)
	var stored *corev1.ConfigMap
	if j.stored == nil {
		stored, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: journalName, Labels: map[string]string{"app.kubernetes.io/name": "jobset-apiserver"},
		}, Data: data}, metav1.CreateOptions{})
	} else {
		next := j.stored.DeepCopy()
		next.Data = data
		stored, err = configMaps.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing the journal of the migration, ConfigMap %s/%s: %w", systemNamespace, journalName, err)
	}
	j.stored = stored
	return nil
}
