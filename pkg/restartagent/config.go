// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// Variables of the environment of the agent.
const (
	jobSetVariable   = "JOBSET_NAME"
	podVariable      = "POD_NAME"
	commandVariable  = "WORKER_COMMAND"
	pathVariable     = "STARTUP_PROBE_PATH"
	portVariable     = "STARTUP_PROBE_PORT"
	exitCodeVariable = "IN_PLACE_RESTART_EXIT_CODE"
	backoffVariable  = "IN_PLACE_RESTART_MAX_BACKOFF_SECONDS"
	shellVariable    = "SHELL"
)

const (
	defaultPath       = "/barrier-is-down"
	defaultPort       = 8081
	defaultExitCode   = 1
	defaultMaxBackoff = 300
	defaultShell      = "bash"
)

// accountDirectory is where kubelet mounts the credentials of the service account.
const accountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config is what the environment of the agent says.
type Config struct {
	// Namespace of the set and the pod.
	Namespace string
	// JobSet is the name of the set, and Pod the name of the pod of the agent.
	JobSet, Pod string
	// Command is the command of the worker, for Shell. Empty if the agent is a sidecar.
	Command, Shell string
	// ProbePath and ProbePort are where a sidecar answers the startup probe, which holds the other containers back.
	ProbePath string
	ProbePort int
	// ExitCode is the one with which the agent requests a restart, from 1 to 255.
	ExitCode int
	// MaxBackoff is the longest time for which a sidecar holds its barrier after restarts in short succession; 0 if it never does.
	MaxBackoff time.Duration
}

// Sidecar reports whether the worker is in another container.
func (c *Config) Sidecar() bool { return c.Command == "" }

// readConfig reads the environment, and the namespace from the directory of the service account. An error has one
// sentence for each mistake, with the name of the variable and what it must be.
func readConfig(lookup func(string) (string, bool), account string) (*Config, error) {
	r := &reader{lookup: lookup}
	c := &Config{
		JobSet:   r.name(jobSetVariable, "the JobSet: set it with the downward API from the annotation jobset.sigs.k8s.io/jobset-name"),
		Pod:      r.name(podVariable, "the pod: set it with the downward API from metadata.name"),
		Command:  r.command(),
		Shell:    defaultShell,
		ExitCode: r.number(exitCodeVariable, defaultExitCode, 1, 255),
	}
	if shell, _ := lookup(shellVariable); shell != "" {
		c.Shell = shell
	}
	c.ProbePath, c.ProbePort = r.path(), r.number(portVariable, defaultPort, 1, 65535)
	c.MaxBackoff = time.Duration(r.number(backoffVariable, defaultMaxBackoff, 0, 24*3600)) * time.Second
	if !c.Sidecar() {
		for _, variable := range []string{pathVariable, portVariable, backoffVariable} {
			if _, set := lookup(variable); set {
				r.fail("%s must not be set together with %s: it is for agents that run as a sidecar", variable, commandVariable)
			}
		}
	}
	c.Namespace = r.namespace(account)
	return c, errors.Join(r.errs...)
}

// reader reads variables, and collects what is wrong with them.
type reader struct {
	lookup func(string) (string, bool)
	errs   []error
}

func (r *reader) fail(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

// name reads the name of an object, which must be set and may be part of a path.
func (r *reader) name(variable, of string) string {
	value, _ := r.lookup(variable)
	if value == "" {
		r.fail("%s must be the name of %s", variable, of)
	} else if problems := content.IsPathSegmentName(value); len(problems) > 0 || len(value) > 253 {
		r.fail("%s must be the name of %s; it is %.300q", variable, of, value)
	}
	return value
}

func (r *reader) command() string {
	value, set := r.lookup(commandVariable)
	if set && strings.TrimSpace(value) == "" {
		r.fail("%s must be the command of the worker, or must not be set: without it, the agent is a sidecar", commandVariable)
	}
	return value
}

func (r *reader) path() string {
	value, set := r.lookup(pathVariable)
	if !set {
		return defaultPath
	}
	if !strings.HasPrefix(value, "/") {
		r.fail("%s must begin with a slash, as the path of the startup probe does; it is %.300q", pathVariable, value)
	}
	return value
}

func (r *reader) number(variable string, standard, least, most int) int {
	value, set := r.lookup(variable)
	if !set {
		return standard
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		r.fail("%s must be a number from %d to %d; it is %.300q", variable, least, most, value)
	}
	return n
}

func (r *reader) namespace(account string) string {
	file := filepath.Join(account, "namespace")
	content, err := os.ReadFile(file)
	namespace := strings.TrimSpace(string(content))
	if err != nil || namespace == "" {
		r.fail("%s must hold the namespace of the pod: set automountServiceAccountToken to true in the pod or in its service account", file)
	}
	return namespace
}

// probeAddress is where a sidecar listens.
func (c *Config) probeAddress() string { return net.JoinHostPort("", strconv.Itoa(c.ProbePort)) }
