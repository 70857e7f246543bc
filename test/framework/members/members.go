// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package members checks the members of the embedded store of an installation in pods.
package members

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecommand"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// AwaitThree waits until the store has three members with a vote, as the last of the pods says. Kubectl runs a command and returns what it printed.
func AwaitThree(t testing.TB, kubectl func(ctx context.Context, args ...string) (string, error)) {
	t.Helper()
	framework.Eventually(t, "the store has three members", func(ctx context.Context) error {
		out, err := kubectl(ctx, "--namespace="+apiservice.Namespace, "exec", "jobset-apiserver-2", "--", "jobset-apiserver", "store", "status", "--output=json")
		if err != nil {
			return err
		}
		var status storecommand.Status
		if err := json.Unmarshal([]byte(out), &status); err != nil {
			return err
		}
		if c := status.Cluster; c == nil || len(c.Members) != 3 || slices.ContainsFunc(c.Members, func(m witness.Member) bool { return m.Learner }) {
			return fmt.Errorf("its cluster is %+v", c)
		}
		return nil
	})
}
