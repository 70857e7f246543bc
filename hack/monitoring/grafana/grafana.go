// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grafana has the part of Grafana's dashboard model that our dashboards use, and lays panels out. Fields are named as in the JSON
// that Grafana 10 and later import.
package grafana

import (
	"encoding/json"
	"fmt"
)

// Dashboard is one dashboard. Panels are laid out in the order of the rows.
type Dashboard struct {
	// UID is part of the URL; it must never change.
	UID string
	// Title is shown in the list of dashboards.
	Title string
	// Description is one sentence.
	Description string
	// Namespaces adds the variable $namespace, with the namespaces of sets. Every dashboard has $cluster.
	Namespaces bool
	// Rows are shown one below the other.
	Rows []Row
}

// Row is a heading with panels below it, at most three in a line.
type Row struct {
	// Title is the heading.
	Title string
	// Panels are shown from left to right.
	Panels []Panel
}

// Panel shows the result of queries.
type Panel struct {
	// Title is the heading.
	Title string
	// Description says what the numbers mean.
	Description string
	// Kind is what is drawn: a graph over time by default.
	Kind Kind
	// Unit is how numbers are printed.
	Unit Unit
	// Stacked draws graphs on top of each other.
	Stacked bool
	// Queries are shown together.
	Queries []Query
}

// Query is an expression of PromQL.
type Query struct {
	// Expr is the expression. Its only variables are $cluster and $namespace, in matchers with regular expressions. Replace both with .* to
	// try it in Prometheus.
	Expr string
	// Legend is the name of a series, with labels as {{label}}.
	Legend string
}

// Kind is the type of a panel.
type Kind string

// Kinds of panels.
const (
	Graph  Kind = "timeseries"
	Number Kind = "stat"
	Table  Kind = "table"
)

// Unit is a unit of Grafana.
type Unit string

// Units of panels.
const (
	Count     Unit = "short"
	Seconds   Unit = "s"
	Bytes     Unit = "bytes"
	Ratio     Unit = "percentunit"
	PerSecond Unit = "ops"
	Cores     Unit = "cores"
	Date      Unit = "dateTimeFromNow"
)

const (
	width  = 24
	height = 8
	inLine = 3
	// schema is the version of the model that the fields below belong to; newer versions of Grafana convert it.
	schema = 39
	// When the values of a variable are read again, and how they are sorted, in the numbers of the model.
	refreshOnTimeRange = 2
	ascending          = 1
)

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// datasource is the Prometheus that the variable of the dashboard names.
var datasource = source{Type: "prometheus", UID: "${datasource}"}

type position struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type target struct {
	Datasource source `json:"datasource"`
	Expr       string `json:"expr"`
	Format     string `json:"format,omitempty"`
	Instant    bool   `json:"instant,omitempty"`
	Legend     string `json:"legendFormat,omitempty"`
	RefID      string `json:"refId"`
}

type panel struct {
	ID          int            `json:"id"`
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	Datasource  *source        `json:"datasource,omitempty"`
	Collapsed   *bool          `json:"collapsed,omitempty"`
	GridPos     position       `json:"gridPos"`
	FieldConfig *fieldConfig   `json:"fieldConfig,omitempty"`
	Options     map[string]any `json:"options,omitempty"`
	Targets     []target       `json:"targets,omitempty"`
}

type fieldConfig struct {
	Defaults  defaults `json:"defaults"`
	Overrides []any    `json:"overrides"`
}

type defaults struct {
	Custom map[string]any `json:"custom,omitempty"`
	Min    *int           `json:"min,omitempty"`
	Unit   Unit           `json:"unit"`
}

// JSON returns the dashboard as Grafana imports it, with a final line break.
func (d *Dashboard) JSON() ([]byte, error) {
	var panels []panel
	y := 0
	for _, row := range d.Rows {
		if len(row.Panels) == 0 {
			return nil, fmt.Errorf("dashboard %s: row %q must have panels", d.UID, row.Title)
		}
		open := false
		panels = append(panels, panel{ID: len(panels) + 1, Type: "row", Title: row.Title, Collapsed: &open,
			GridPos: position{H: 1, W: width, Y: y}})
		y++
		for i := range row.Panels {
			line, column := i/inLine, i%inLine
			across := min(inLine, len(row.Panels)-line*inLine)
			at := position{H: height, W: width / across, X: column * width / across, Y: y + line*height}
			panels = append(panels, row.Panels[i].model(len(panels)+1, at))
		}
		y += (len(row.Panels) + inLine - 1) / inLine * height
	}
	content, err := json.MarshalIndent(d.model(panels), "", "  ")
	return append(content, '\n'), err
}

func (d *Dashboard) model(panels []panel) map[string]any {
	return map[string]any{
		"uid": d.UID, "title": d.Title, "description": d.Description, "tags": []string{"jobset"}, "schemaVersion": schema, "version": 1,
		"editable": true,
		"refresh":  "30s", "timezone": "browser", "graphTooltip": 1, "time": map[string]string{"from": "now-3h", "to": "now"},
		"annotations": map[string]any{"list": []any{}},
		"links": []any{map[string]any{
			"asDropdown": false, "includeVars": true, "keepTime": true, "tags": []string{"jobset"}, "title": "JobSet", "type": "dashboards",
		}},
		"templating": map[string]any{"list": d.variables()},
		"panels":     panels,
	}
}

func (d *Dashboard) variables() []any {
	all := []any{
		map[string]any{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "hide": 0},
		values("cluster", "Cluster", `label_values(up{job=~"jobset-apiserver|jobset-controller"}, cluster)`),
	}
	if d.Namespaces {
		all = append(all, values("namespace", "Namespace", `label_values(jobset_ready_ratio{cluster=~"$cluster"}, namespace)`))
	}
	return all
}

// values is a variable with the values of a label, of which users select some or all. All is .*, which also matches series without the
// label.
func values(name, label, query string) map[string]any {
	return map[string]any{
		"name": name, "label": label, "type": "query", "datasource": datasource, "hide": 0,
		"query": map[string]string{"query": query, "refId": name}, "definition": query,
		"multi": true, "includeAll": true, "allValue": ".*", "refresh": refreshOnTimeRange, "sort": ascending,
		"current": map[string]any{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
	}
}

func (p *Panel) model(id int, at position) panel {
	kind := p.Kind
	if kind == "" {
		kind = Graph
	}
	zero := 0
	m := panel{
		ID: id, Type: string(kind), Title: p.Title, Description: p.Description, Datasource: &datasource, GridPos: at,
		FieldConfig: &fieldConfig{Defaults: defaults{Unit: p.Unit}, Overrides: []any{}},
	}
	switch kind {
	case Graph:
		m.FieldConfig.Defaults.Min = &zero
		m.FieldConfig.Defaults.Custom = map[string]any{"fillOpacity": 10, "lineWidth": 1, "showPoints": "never"}
		if p.Stacked {
			m.FieldConfig.Defaults.Custom["stacking"] = map[string]string{"group": "A", "mode": "normal"}
		}
		m.Options = map[string]any{"legend": map[string]any{"displayMode": "list", "placement": "bottom"},
			"tooltip": map[string]string{"mode": "multi", "sort": "desc"}}
	case Number:
		m.Options = map[string]any{"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "values": false}, "colorMode": "value",
			"graphMode": "area"}
	}
	for i, query := range p.Queries {
		t := target{Datasource: datasource, Expr: query.Expr, Legend: query.Legend, RefID: string(rune('A' + i))}
		if kind == Table {
			t.Format, t.Instant = "table", true
		}
		m.Targets = append(m.Targets, t)
	}
	return m
}
