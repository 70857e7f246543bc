// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	kjson "sigs.k8s.io/json"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// directive is a key of strategic merge patches, which payloads of revisions are.
const directive = "$patch"

// versioned returns the served form of a set, for functions that know only this one. It shares what the set points to.
func versioned(set *leaderworkerset.LeaderWorkerSet) (*leaderworkersetv1.LeaderWorkerSet, error) {
	var out leaderworkersetv1.LeaderWorkerSet
	err := leaderworkersetv1.Convert_leaderworkerset_LeaderWorkerSet_To_v1_LeaderWorkerSet(set, &out, nil)
	return &out, err
}

// applyRevision takes the templates and the network of a revision. Everything else stays, also the limit of restarts, which
// is no part of a revision.
func applyRevision(set *leaderworkerset.LeaderWorkerSet, live *leaderworkersetv1.LeaderWorkerSet, to *appsv1.ControllerRevision) error {
	if err := checkPayload(to.Data.Raw); err != nil {
		return err
	}
	former, err := helper.Restore(live, to.Data.Raw)
	if err != nil {
		return err
	}
	leaderworkersetv1.SetObjectDefaults_LeaderWorkerSet(former)
	var out leaderworkerset.LeaderWorkerSet
	if err := leaderworkersetv1.Convert_v1_LeaderWorkerSet_To_leaderworkerset_LeaderWorkerSet(former, &out, nil); err != nil {
		return err
	}
	set.Spec.LeaderWorkerTemplate, set.Spec.NetworkConfig = out.Spec.LeaderWorkerTemplate, out.Spec.NetworkConfig
	return nil
}

// checkPayload refuses what the server does not know: it would be lost without a word.
func checkPayload(data []byte) error {
	var payload struct {
		Spec struct {
			LeaderWorkerTemplate map[string]json.RawMessage `json:"leaderWorkerTemplate"`
			NetworkConfig        map[string]json.RawMessage `json:"networkConfig"`
		} `json:"spec"`
	}
	if err := strictly(data, &payload); err != nil {
		return err
	}
	if payload.Spec.LeaderWorkerTemplate == nil {
		return errors.New("it has no spec.leaderWorkerTemplate")
	}
	if err := part(payload.Spec.LeaderWorkerTemplate, &leaderworkersetv1.LeaderWorkerTemplate{}); err != nil {
		return fmt.Errorf("spec.leaderWorkerTemplate: %w", err)
	}
	if err := part(payload.Spec.NetworkConfig, &leaderworkersetv1.NetworkConfig{}); err != nil {
		return fmt.Errorf("spec.networkConfig: %w", err)
	}
	return nil
}

func part(fields map[string]json.RawMessage, into any) error {
	delete(fields, directive)
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return strictly(data, into)
}

// strictly decodes, and returns what is not known or given twice as an error.
func strictly(data []byte, into any) error {
	problems, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return err
	}
	return errors.Join(problems...)
}
