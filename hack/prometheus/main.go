// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Program prometheus is Prometheus without what tests do not need: its scraper, its database, its rules and its query
// engine, with static targets only and without the web interface, the other ways to discover targets and remote
// storage, which take most of the time to build it. Its argument is a configuration file of Prometheus. It prints the
// address at which it answers, and ends when its standard input does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: prometheus CONFIG")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until the input ends.
func run(file string, input io.Reader, output io.Writer) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	configuration, err := config.LoadFile(file, false, logger)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "prometheus-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := start(configuration, filepath.Join(dir, "data"), logger)
	if err != nil {
		return err
	}
	defer s.stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(output, "http://%s\n", listener.Addr())
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, input)
		close(ended)
	}()
	select {
	case err := <-failed:
		return err
	case <-ended:
		return server.Close()
	}
}

// system is what scrapes, stores, evaluates rules and answers queries.
type system struct {
	db      *tsdb.DB
	engine  *promql.Engine
	parser  parser.Parser
	scraper *scrape.Manager
	rules   *rules.Manager
	groups  chan map[string][]*targetgroup.Group
}

func start(configuration *config.Config, dir string, logger *slog.Logger) (*system, error) {
	registry := prometheus.NewRegistry()
	s := &system{parser: parser.NewParser(parser.Options{}), groups: make(chan map[string][]*targetgroup.Group, 1)}
	s.engine = promql.NewEngine(promql.EngineOpts{
		Logger: logger, Reg: registry, MaxSamples: 10_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser: s.parser,
	})
	var err error
	if s.db, err = tsdb.Open(dir, logger, registry, tsdb.DefaultOptions(), tsdb.NewDBStats()); err != nil {
		return nil, err
	}
	often := &scrape.Options{DiscoveryReloadInterval: model.Duration(100 * time.Millisecond)}
	if s.scraper, err = scrape.NewManager(often, logger, nil, s.db, nil, registry); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	s.rules = rules.NewManager(&rules.ManagerOptions{
		Appendable: s.db, Queryable: s.db, QueryFunc: rules.EngineQueryFunc(s.engine, s.db), Context: context.Background(), Registerer: registry,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: logger, Parser: s.parser,
	})
	if err := s.apply(configuration); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	go func() {
		if err := s.scraper.Run(s.groups); err != nil {
			logger.Error("scraping ended", "err", err)
		}
	}()
	go s.rules.Run()
	return s, nil
}

func (s *system) apply(configuration *config.Config) error {
	if err := s.scraper.ApplyConfig(configuration); err != nil {
		return err
	}
	targets, err := staticTargets(configuration)
	if err != nil {
		return err
	}
	s.groups <- targets
	return s.rules.Update(time.Duration(configuration.GlobalConfig.EvaluationInterval), configuration.RuleFiles, labels.EmptyLabels(), "", nil)
}

func staticTargets(configuration *config.Config) (map[string][]*targetgroup.Group, error) {
	targets := map[string][]*targetgroup.Group{}
	for _, job := range configuration.ScrapeConfigs {
		for _, source := range job.ServiceDiscoveryConfigs {
			static, ok := source.(discovery.StaticConfig)
			if !ok {
				return nil, fmt.Errorf("job %s: targets must be static_configs, not %s", job.JobName, source.Name())
			}
			targets[job.JobName] = append(targets[job.JobName], static...)
		}
	}
	return targets, nil
}

func (s *system) stop() {
	s.rules.Stop()
	s.scraper.Stop()
	if err := errors.Join(s.engine.Close(), s.db.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
