// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// controllers are the users with which the controllers of sets send requests.
func (c *Cluster) controllers() []string {
	if c.Upstream {
		return []string{"system:serviceaccount:jobset-system:jobset-controller-manager", "system:serviceaccount:lws-system:lws-controller-manager"}
	}
	return []string{"system:serviceaccount:jobset-system:jobset-controller-manager"}
}

// auditEvent is what a line of the audit log says about a request.
type auditEvent struct {
	Verb string
	User struct{ Username string }
	Ref  struct{ Resource, Subresource string } `json:"objectRef"`
}

func (c *Cluster) auditLog() string { return filepath.Join(c.Dir, "logs", "kube-apiserver-audit.log") }

// auditLogs returns the files of the audit log of kube-apiserver in their order; none if it has none. kube-apiserver
// begins a new file after 100 MB, which is about 80,000 requests, and puts the time into the name of the old one.
func (c *Cluster) auditLogs() ([]string, error) {
	path, err := filepath.EvalSymlinks(c.auditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	extension := filepath.Ext(path)
	old, err := filepath.Glob(strings.TrimSuffix(path, extension) + "-*" + extension)
	return append(old, path), err
}

// auditEnd is the size of the audit log, all files together, or -1 if there is none.
func (c *Cluster) auditEnd() (int64, error) {
	logs, err := c.auditLogs()
	if err != nil || len(logs) == 0 {
		return -1, err
	}
	size := int64(0)
	for _, log := range logs {
		info, err := os.Stat(log)
		if err != nil {
			return 0, err
		}
		size += info.Size()
	}
	return size, nil
}

// asked returns the requests of jobset-controller that the audit log has from there on, those that keep its lease aside.
func (c *Cluster) asked(from int64) (Calls, error) {
	logs, err := c.auditLogs()
	if err != nil {
		return nil, err
	}
	calls := Calls{}
	for _, log := range logs {
		info, err := os.Stat(log)
		if err != nil {
			return nil, err
		}
		if from < info.Size() {
			if err := calls.addAsked(log, from, c.controllers()); err != nil {
				return nil, fmt.Errorf("reading %s: %w", log, err)
			}
		}
		from = max(from-info.Size(), 0)
	}
	return calls, nil
}

// addAsked adds the requests of the users in a file from there on.
func (calls Calls) addAsked(path string, from int64, users []string) error {
	log, err := os.Open(path)
	if err != nil {
		return err
	}
	defer log.Close()
	if _, err := log.Seek(from, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what comes after the last line break is not written yet
		}
		if err != nil {
			return err
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		resource := event.Ref.Resource
		if !slices.Contains(users, event.User.Username) || resource == "leases" || resource == "" {
			continue
		}
		if event.Ref.Subresource != "" {
			resource += "/" + event.Ref.Subresource
		}
		calls[event.Verb+" "+resource]++
	}
}
