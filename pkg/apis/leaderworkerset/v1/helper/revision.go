// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// payload is what a ControllerRevision of a set holds.
type payload struct {
	Spec payloadSpec `json:"spec"`
}

type payloadSpec struct {
	LeaderWorkerTemplate json.RawMessage                  `json:"leaderWorkerTemplate"`
	NetworkConfig        *leaderworkersetv1.NetworkConfig `json:"networkConfig"`
}

// RevisionPayload returns what a ControllerRevision of the set holds: what rolls groups when it changes. Sets of
// upstream with the same spec have the same bytes, and so the same key. maxGroupRestarts is not part of it.
func RevisionPayload(set *leaderworkersetv1.LeaderWorkerSet) ([]byte, error) {
	t := set.Spec.LeaderWorkerTemplate
	t.MaxGroupRestarts = nil
	template, err := patch(t)
	if err != nil {
		return nil, fmt.Errorf("encoding spec.leaderWorkerTemplate: %w", err)
	}
	network, err := patch(networkOf(&set.Spec))
	if err != nil {
		return nil, fmt.Errorf("encoding spec.networkConfig: %w", err)
	}
	return json.Marshal(map[string]any{"spec": map[string]any{"leaderWorkerTemplate": template, "networkConfig": network}})
}

// patch returns a value as a strategic merge patch that replaces it. Keys of maps are written in order.
func patch(value any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	m["$patch"] = "replace"
	return m, nil
}

func networkOf(spec *leaderworkersetv1.LeaderWorkerSetSpec) leaderworkersetv1.NetworkConfig {
	if UniquePerReplica(spec.NetworkConfig) {
		return leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)}
	}
	return leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainShared)}
}

// RevisionKey returns the key of a payload.
func RevisionKey(payload []byte) string {
	h := fnv.New32()
	_, _ = h.Write(payload)
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// IsRevisionKey returns whether a key may be one that RevisionKey returns. Those of the first releases of upstream are longer.
func IsRevisionKey(key string) bool {
	const longest = 10 // of 32 bits
	return key != "" && len(key) <= longest && strings.Trim(key, rand.SafeEncodeString("0123456789")) == ""
}

// Restore returns a copy of the set as it was at a revision: with the templates and the network of the payload, and
// everything else as it is now.
func Restore(set *leaderworkersetv1.LeaderWorkerSet, data []byte) (*leaderworkersetv1.LeaderWorkerSet, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("decoding the revision: %w", err)
	}
	if len(p.Spec.LeaderWorkerTemplate) == 0 || string(p.Spec.LeaderWorkerTemplate) == "null" {
		return nil, errors.New("decoding the revision: it has no spec.leaderWorkerTemplate")
	}
	out := set.DeepCopy()
	limit := out.Spec.LeaderWorkerTemplate.MaxGroupRestarts
	out.Spec.LeaderWorkerTemplate = leaderworkersetv1.LeaderWorkerTemplate{}
	if err := json.Unmarshal(p.Spec.LeaderWorkerTemplate, &out.Spec.LeaderWorkerTemplate); err != nil {
		return nil, fmt.Errorf("decoding spec.leaderWorkerTemplate of the revision: %w", err)
	}
	out.Spec.LeaderWorkerTemplate.MaxGroupRestarts = limit
	network := networkOf(&leaderworkersetv1.LeaderWorkerSetSpec{NetworkConfig: p.Spec.NetworkConfig})
	out.Spec.NetworkConfig = &network
	return out, nil
}

// SameRevision returns whether a payload means what the spec of the set says, in whatever way a former release has written it.
func SameRevision(set *leaderworkersetv1.LeaderWorkerSet, data []byte) bool {
	now, err := RevisionPayload(set)
	if err != nil {
		return false
	}
	if bytes.Equal(now, data) {
		return true
	}
	then, err := meaning(set, data)
	if err != nil {
		return false
	}
	now, err = meaning(set, now)
	return err == nil && bytes.Equal(now, then)
}

// meaning returns a payload as it is written now, with all defaults.
func meaning(set *leaderworkersetv1.LeaderWorkerSet, data []byte) ([]byte, error) {
	restored, err := Restore(set, data)
	if err != nil {
		return nil, err
	}
	leaderworkersetv1.SetObjectDefaults_LeaderWorkerSet(restored)
	t := &restored.Spec.LeaderWorkerTemplate
	if t.RestartPolicy == leaderworkersetv1.RestartPolicyDefault {
		t.RestartPolicy = leaderworkersetv1.RestartPolicyNone
	}
	keepTemplateMetadata(&t.WorkerTemplate)
	if t.LeaderTemplate != nil {
		keepTemplateMetadata(t.LeaderTemplate)
	}
	return RevisionPayload(restored)
}

// keepTemplateMetadata removes from the metadata of a template what has no meaning there, and what the server does not store.
func keepTemplateMetadata(t *corev1.PodTemplateSpec) {
	m := t.ObjectMeta
	t.ObjectMeta = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations,
		Finalizers: m.Finalizers}
}

// IsRevision returns whether data is the payload of a revision of a set, and not that of another kind.
func IsRevision(data []byte) bool {
	var p struct {
		Spec struct {
			LeaderWorkerTemplate map[string]any `json:"leaderWorkerTemplate"`
		} `json:"spec"`
	}
	return json.Unmarshal(data, &p) == nil && len(p.Spec.LeaderWorkerTemplate) > 0
}

// SizeOfRevision returns the number of pods of a group at a revision.
func SizeOfRevision(data []byte) (int32, error) {
	var p struct {
		Spec struct {
			LeaderWorkerTemplate struct {
				Size *int32 `json:"size"`
			} `json:"leaderWorkerTemplate"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return 0, fmt.Errorf("decoding the revision: %w", err)
	}
	return max(1, ptr.Deref(p.Spec.LeaderWorkerTemplate.Size, 1)), nil
}
