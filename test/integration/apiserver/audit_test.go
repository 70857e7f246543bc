// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// auditFlags returns flags of a server that writes an audit log with requests and responses for our kinds, and the path of the log.
func auditFlags(t *testing.T) (log string, flags []string) {
	t.Helper()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	content := "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: RequestResponse\n  resources: [{group: jobset.x-k8s.io}, {group: batch.jobset-apiserver.io}, {group: leaderworkerset.x-k8s.io}]\n- level: None\n"
	if err := os.WriteFile(policy, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return log, []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}
}

// auditEvent waits for the event of a completed request in the audit log and returns it.
func auditEvent(t *testing.T, log, what string, matches func(*auditv1.Event) bool) *auditv1.Event {
	t.Helper()
	var found *auditv1.Event
	framework.Eventually(t, "the event of "+what+" is written", func(context.Context) error {
		file, err := os.Open(log)
		if err != nil {
			return err
		}
		defer file.Close()
		for scanner := bufio.NewScanner(file); scanner.Scan(); {
			event := &auditv1.Event{}
			if err := json.Unmarshal(scanner.Bytes(), event); err != nil {
				return err
			}
			if event.Stage == auditv1.StageResponseComplete && matches(event) {
				found = event
				return nil
			}
		}
		return errors.New("the log has no such event")
	})
	return found
}

func TestAudit(t *testing.T) {
	log, flags := auditFlags(t)
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)), flags...)...)
	// The event names the user, although the request comes from kube-apiserver.
	plane.Aggregate(t, server)
	user, err := plane.AddUser("dora", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, server, user.Config())
	e.create(t, jobSet("audited"))
	event := auditEvent(t, log, "the creation", func(event *auditv1.Event) bool {
		return event.Verb == "create" && event.User.Username == "dora" && event.ObjectRef.Name == "audited"
	})
	if !strings.Contains(string(event.RequestObject.Raw), "replicatedJobs") {
		t.Errorf("the request is missing: %s", event.RequestObject.Raw)
	}
}
