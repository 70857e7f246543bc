// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// kwokController plays the kubelets of the simulated nodes. It is not started by kwokctl, which would make it an administrator: the user
// of this name has the permissions in hack/kwok/access.yaml, and cannot delete a pod unless that pod is being deleted.
const kwokController = "kwok-controller"

// kwokCommand is the command line that kwokctl would choose, without the server of logs and metrics.
func (c *supervisor) kwokCommand() []string {
	command := []string{filepath.Join(c.binaries, "kwok"), "--kubeconfig=" + c.path("kwok.kubeconfig"),
		"--config=" + filepath.Join(c.root, "hack", "kwok", "stages.yaml"), "--node-ip=", "--node-lease-duration-seconds=200"}
	if c.realNodes > 0 {
		// KWOK does not play the containers of real nodes.
		return append(command, "--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake")
	}
	return append(command, "--manage-all-nodes=true")
}

// upKwok starts KWOK once it has its permissions.
func (c *supervisor) upKwok() error {
	if err := c.applyPath("-f", filepath.Join(c.root, "hack", "kwok", "access.yaml")); err != nil {
		return err
	}
	if err := c.writeIdentity(c.path("kwok.kubeconfig"), c.admin.server, kwokController, ""); err != nil {
		return err
	}
	return c.startKwok()
}

// startKwok starts KWOK unless it runs. As the rest of the control plane, it keeps its command line while it does: another KWOK leaves
// the nodes alone until the leases of the former one have ended.
func (c *supervisor) startKwok() error {
	if _, ok := c.pid(kwokController); ok {
		return nil
	}
	say("starting " + kwokController)
	return c.startIn(c.kubeEnvironment(), kwokController, c.kwokCommand()...)
}

// kwokDeletions are the deletions of pods in a log of KWOK.
type kwokDeletions struct {
	// done are the pods that KWOK deleted.
	done int
	// missing are deletions of pods that were gone.
	missing int
	// refused are deletions of pods that were not being deleted.
	refused int
}

// readKwokDeletions reads a log of KWOK. A last line that is incomplete does not count.
func readKwokDeletions(log io.Reader) (d kwokDeletions, err error) {
	for reader := bufio.NewReader(log); ; {
		line, err := reader.ReadBytes('\n')
		var entry struct{ Msg, Err, Stage string }
		switch {
		case errors.Is(err, io.EOF):
			return d, nil
		case err != nil:
			return d, err
		case json.Unmarshal(line, &entry) != nil:
			// Go programs that crash do not write JSON.
		case entry.Msg == "Delete pod":
			d.done++
		case entry.Stage != "pod-delete":
		case strings.HasSuffix(entry.Err, " not found"):
			d.missing++
		case strings.Contains(entry.Err, " ValidatingAdmissionPolicy '"+kwokController+"' "):
			d.refused++
		}
	}
}

func (d kwokDeletions) String() string {
	return fmt.Sprintf("KWOK deleted %d pods, found %d gone, and was refused %d that were not being deleted", d.done, d.missing, d.refused)
}

// check returns an error if too many deletions came late. KWOK deletes pods by name, a second time if they change meanwhile: a late
// deletion meets no pod, or the next one of that name. None of 190 was late on an idle machine; the bound leaves room for a busy one,
// and is far below what a stage pod-delete makes that matches pods which it must not match: nearly as many as deletions.
func (d kwokDeletions) check() error {
	const few, share = 20, 10
	if late := d.missing + d.refused; late > max(few, d.done/share) {
		return fmt.Errorf("%s: at most %d and one of %d may be late; see stage pod-delete in hack/kwok/stages.yaml", d, few, share)
	}
	return nil
}

// checkKwok prints which pods KWOK deleted in the cluster, and returns an error if they were wrong ones.
func (c *Cluster) checkKwok() error {
	log, err := os.Open(filepath.Join(c.Dir, "logs", kwokController+".log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the cluster did not start
	}
	if err != nil {
		return err
	}
	defer log.Close()
	deletions, err := readKwokDeletions(log)
	if err != nil {
		return err
	}
	say(deletions.String())
	return deletions.check()
}
