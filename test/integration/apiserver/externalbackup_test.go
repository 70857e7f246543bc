// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"path/filepath"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestBackupOfExternalEtcd: with the flags of the server.
func TestBackupOfExternalEtcd(t *testing.T) {
	tier.OnRequest(t, "backups of an external etcd")
	etcd := plane.StartEtcd(t)
	server := plane.StartServer(t, etcd.Flags...)
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))
	file := filepath.Join(framework.ShortDir(t), "b.db")
	storeTool(t, 0, "verified.", append([]string{"backup", file}, etcd.Flags...)...)
	storeTool(t, 0, "jobsets.jobset.x-k8s.io: 1 object\n", "verify", file)
	storeTool(t, 1, "error: --etcd-cafile: certificate of ", "backup", file+"2", "--etcd-servers="+etcd.Endpoint)
}
