"""The maker's own SDK, horiba-sdk, on the simulated ICL."""

import asyncio
from typing import Any

import pytest

from interop.conftest import client
from served import Served

pytestmark = pytest.mark.filterwarnings("ignore")  # a client's own

ASK_S, IDLE_S_MAX = 0.05, 20.0


async def _until_idle(is_busy: Any) -> None:
    """Ask as its client does, which has nothing but polling."""
    for _ in range(round(IDLE_S_MAX / ASK_S)):
        if not await is_busy():
            return
        await asyncio.sleep(ASK_S)
    raise AssertionError(f"busy after {IDLE_S_MAX:g} s")


def test_it_discovers_sets_exposes_reads_and_is_told_what_is_refused(lab: Served) -> None:
    manager = client("horiba_sdk.devices.device_manager")
    axis = client("horiba_sdk.core.x_axis_conversion_type").XAxisConversionType
    form = client("horiba_sdk.core.acquisition_format").AcquisitionFormat
    timer = client("horiba_sdk.core.timer_resolution").TimerResolution
    host, _, number = lab.status["ports"]["spectrometer"].removeprefix("ws://").partition(":")

    async def talk() -> None:
        icl = manager.DeviceManager(
            start_icl=False, icl_ip=host, icl_port=number, enable_binary_messages=False
        )
        await icl.start()
        (ccd,), (mono,) = icl.charge_coupled_devices, icl.monochromators
        assert icl.spectracq3_devices == []
        await mono.open()
        await mono.initialize()
        await _until_idle(mono.is_busy)
        assert (await mono.configuration())["gratings"][0]["grooveDensity"] == 1800
        await mono.move_to_target_wavelength(544.0)
        await _until_idle(mono.is_busy)
        assert await mono.get_current_wavelength() == 544.0

        await ccd.open()
        config = await ccd.get_configuration()
        width, height = int(config["chipWidth"]), int(config["chipHeight"])
        await ccd.set_acquisition_count(1)
        await ccd.set_center_wavelength(mono.id(), 544.0)
        await ccd.set_exposure_time(200)
        await ccd.set_gain(0)
        await ccd.set_speed(2)
        await ccd.set_timer_resolution(timer.MILLISECONDS)
        await ccd.set_acquisition_format(1, form.SPECTRA_IMAGE)
        await ccd.set_region_of_interest(1, 0, 0, width, height, 1, height)
        await ccd.set_x_axis_conversion_type(axis.FROM_ICL_SETTINGS_INI)
        assert await ccd.get_exposure_time() == 200
        await ccd.acquisition_start(open_shutter=True)
        await _until_idle(ccd.get_acquisition_busy)
        (found,) = (await ccd.get_acquisition_data())["acquisition"][0]["roi"]
        assert len(found["xData"]) == len(found["yData"][0]) == width
        assert found["xData"][width // 2] == pytest.approx(544.0, abs=0.02)

        with pytest.raises(Exception, match="invalid value"):
            await ccd.set_region_of_interest(1, 1, 0, width, height, 1, height)
        with pytest.raises(Exception, match="unknown command"):
            await ccd.get_acquisition_ready()
        await ccd.acquisition_abort()
        await ccd.restart()
        await ccd.close()
        await mono.close()
        await icl.stop()

    asyncio.run(talk())
