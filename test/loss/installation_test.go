// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// installationIsDeleted deletes the namespace of the installation, with its Service and its service accounts. The
// record is in another namespace. Installed again on the same store, the server serves it, but runs nothing in a
// namespace that was deleted meanwhile as well and created again.
func (s *stage) installationIsDeleted(t *testing.T) {
	before, err := s.record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := s.newRecreatedNamespace(t)
	begin := time.Now()
	s.deleteNamespace(t, apiservice.Namespace)
	lost := s.watch(t, s.namespace, s.before, watched, never)
	s.stop(t)
	// The namespace ends only when its groups are not registered any more, since their server cannot be asked.
	for _, group := range apiservice.Groups {
		if err := s.dynamic.Resource(apiservice.Resource).Delete(t.Context(), apiservice.Name(group), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.namespaceEnds(t, apiservice.Namespace)
	again.recreate(t)
	// The tokens ended with the accounts.
	if err := errors.Join(os.Remove(filepath.Join(s.Dir, "apiserver.kubeconfig")), os.Remove(filepath.Join(s.Dir, "controller.kubeconfig")),
		s.Script("stop", "controller"), s.Script("up"), s.Script("stop", "apiserver")); err != nil {
		t.Fatal(err)
	}
	s.serve(t, on(s.right))
	after, err := s.record(t.Context())
	if err != nil || after.UUID != before.UUID || after.Refusal != nil {
		t.Errorf("the record is %+v (%v), must have the UUID %s and no refusal", after, err, before.UUID)
	}
	lost = append(lost, s.watch(t, s.namespace, s.before, 5*time.Second, never)...)
	report(t, row{fault: "namespace of the installation deleted, installed again", jobs: len(s.before.jobs), deleted: deletedJobs(lost), watched: time.Since(begin)})
	if len(lost) > 0 {
		t.Errorf("lost: %.300v", lost)
	}
	again.held(t)
}
