// What the report uses of Apache ECharts; esbuild leaves the rest out (README.md beside this file has the command).
export { init } from "echarts/core";
import { use } from "echarts/core";
import { CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { AriaComponent, GridComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

use([CustomChart, LineChart, ScatterChart, AriaComponent, GridComponent, CanvasRenderer]);
