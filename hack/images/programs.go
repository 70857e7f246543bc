// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

// program is one that has an image and, if it is the plugin, archives.
type program struct {
	// Name is the name of the file and of the image. The manifests in artifacts/ use it.
	Name string
	// Package is below the root of the module.
	Package string
	// Description is one sentence, for registries.
	Description string
	// Ports are the ports that the program listens on by default.
	Ports []string
}

// servers are the programs that run in the cluster. A program that is added here gets an image.
var servers = []program{
	{
		Name:        "jobset-apiserver",
		Package:     "./cmd/apiserver",
		Description: "Serves JobSets, SequentialJobs and LeaderWorkerSets behind kube-apiserver.",
		Ports:       []string{"8443/tcp"},
	},
	{
		Name:        "jobset-controller",
		Package:     "./cmd/controller",
		Description: "Turns JobSets, SequentialJobs and LeaderWorkerSets into Jobs, StatefulSets, Services and volume claims.",
		Ports:       []string{"8443/tcp", "8081/tcp"},
	},
	{
		Name:        "jobset-restart-agent",
		Package:     "./cmd/restart-agent",
		Description: "Restarts the containers of the pods of a JobSet in place, all at the same time.",
		Ports:       []string{"8081/tcp"},
	},
}

// plugin runs on the machines of users, and in the Job of `kubectl jobset migrate --in-cluster`.
var plugin = program{
	Name:        "kubectl-jobset",
	Package:     "./cmd/kubectl-jobset",
	Description: "Shows JobSets, SequentialJobs and LeaderWorkerSets, explains why they do not run, and controls them.",
}

// imagePrograms are the programs that get an image.
var imagePrograms = append(slices.Clone(servers), plugin)

const (
	// pluginName is the name of the plugin for kubectl and Krew: kubectl jobset.
	pluginName       = "jobset"
	shortDescription = "Show, explain and control JobSets"
	pluginText       = `Shows the state of JobSets, SequentialJobs and LeaderWorkerSets as a list, a tree
or a timeline, explains why they do not run and what to do, collects the logs and
events of all pods, and restarts, suspends, resumes, cancels and retries them.
It connects to kube-apiserver only, with the credentials of the user.
`
)

// imagePlatforms are the platforms that images are built for.
var imagePlatforms = []golang.Platform{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}
